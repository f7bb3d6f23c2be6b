"""Recurrences that outgrow the numbers, and steep functions inside of what looks like a choice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.serve.reports.report import Report


def of_loss(loss: Callable[[Any], Any], *values: Any) -> Report:
    variables = [tf.Variable(value, name=f"v{place}") for place, value in enumerate(values)]
    return tb_gradflow.explain(lambda: loss(*variables), variables=variables)


def grown_in_loop(w: Any, b: Any) -> Any:
    state = tf.ones((1, 3))
    for _ in tf.range(200):
        state = state @ w + b
    return tf.reduce_sum(state**2)


def grown_in_a_row(w: Any, b: Any) -> Any:
    state = tf.ones((1, 3))
    for _ in range(80):
        state = state @ w + b
    return tf.reduce_mean(state**2)


@pytest.mark.parametrize(("loss", "op"), [(grown_in_loop, "While"), (grown_in_a_row, "MatMul")])
def test_a_state_that_grows_to_infinity_is_the_recurrences_fault(loss: Any, op: str) -> None:
    report = of_loss(loss, tf.eye(3) * 5.0, tf.ones(3))

    [finding] = report.findings
    assert (finding.cause, finding.severity) == ("exploding_recurrence", "error")
    assert set(finding.variables) == {"v0", "v1"}
    assert finding.op is not None
    assert finding.op.type == op
    assert "until it is infinite" in finding.message


def test_a_linear_recurrent_layer_that_overflows_leads_the_report() -> None:
    grow = keras.initializers.Identity(3.0)
    recurrent = keras.layers.SimpleRNN(4, activation="linear", recurrent_initializer=grow)
    model = keras.Sequential([keras.Input((200, 2)), recurrent, keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    report = tb_gradflow.explain(model, np.ones((4, 200, 2), np.float32), np.ones((4, 1), np.float32))

    [finding] = report.findings
    assert finding.cause == "exploding_recurrence"
    assert len(finding.variables) == 5


def test_a_bounded_recurrence_is_not_blamed_for_a_logarithm_behind_it() -> None:
    def loss(w: Any) -> Any:
        state = tf.ones((1, 3))
        for _ in tf.range(20):
            state = tf.tanh(state @ w)
        return tf.reduce_sum(tf.math.log(state - state))

    report = of_loss(loss, tf.eye(3) * 5.0)

    assert report.findings[0].cause == "log_zero"


def soft_round(x: Any) -> Any:
    """As the usual library has it: without a slope at all where it is as steep as this."""
    steepness = 1000.0
    middle = tf.floor(x) + 0.5
    rounded = middle + tf.tanh(steepness * (x - middle)) / (2.0 * tf.tanh(steepness / 2.0))
    return tf.reduce_sum(tf.where(steepness < 1e-3, x, rounded))


def steep_in_both_branches(x: Any) -> Any:
    return tf.reduce_sum(tf.cond(tf.reduce_sum(x) > 0, lambda: tf.tanh(1000.0 * x), lambda: x))


@pytest.mark.parametrize("loss", [soft_round, steep_in_both_branches])
def test_a_steep_function_on_the_chosen_side_is_what_is_told(loss: Any) -> None:
    report = of_loss(loss, [0.3, 1.7, 2.2])

    [finding] = report.findings
    assert finding.cause == "saturation_sigmoid"
    assert finding.op is not None
    assert finding.op.type == "Tanh"


def test_a_side_that_was_not_chosen_stays_information() -> None:
    def loss(x: Any) -> Any:
        return tf.reduce_sum(tf.where(tf.constant([1.0, 2.0, 3.0]) > 0, tf.constant([1.0, 2.0, 3.0]), tf.tanh(x)))

    report = of_loss(loss, [0.3, 1.7, 2.2])

    [finding] = report.findings
    assert (finding.cause, finding.severity) == ("branch_not_taken", "info")
