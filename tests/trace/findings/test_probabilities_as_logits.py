"""A softmax or a sigmoid that is applied twice: by the model, and by the loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import pytest
import tensorflow as tf

import tb_gradflow
from tests.trace.probabilities import (
    ONE_HOT,
    WEIGHTS,
    X,
    Y,
    a_teacher,
    in_the_call,
    labels_that_are_learned,
    logarithms_of_shares,
    of_sigmoids,
    scaled_shares,
    shares_as_labels_of_a_sigmoid,
    shares_that_are_learned_as_labels_of_a_sigmoid,
    two_sigmoids,
    under_a_name,
)


@pytest.mark.parametrize(
    ("loss", "told"),
    [
        (under_a_name, "With 3 classes, the loss cannot fall below 0.55."),
        (in_the_call, "With 3 classes, the loss cannot fall below 0.55."),
        (of_sigmoids, "results of a sigmoid, `tf.sigmoid`"),
        (two_sigmoids, "cannot fall below 0.31 for labels of 1, and 0.69 for labels of 0."),
    ],
)
def test_a_loss_that_takes_probabilities_for_logits_is_told(loss: Callable[[], Any], told: str) -> None:
    report = tb_gradflow.explain(loss, args=(), variables=[WEIGHTS])

    [finding] = report.findings
    assert (finding.cause, finding.severity) == ("probabilities_as_logits", "warning")
    assert told in finding.message


def test_the_bound_that_is_told_is_that_of_the_loss() -> None:
    sure = tf.one_hot(Y, 3).numpy() * 1e4

    assert tf.reduce_mean(
        tf.nn.softmax_cross_entropy_with_logits(ONE_HOT, tf.nn.softmax(sure))
    ).numpy() == pytest.approx(0.5514, abs=1e-4)
    assert tf.nn.sigmoid_cross_entropy_with_logits([1.0, 0.0], [1.0, 0.0]).numpy() == pytest.approx(
        [0.3133, 0.6931], abs=1e-4
    )


@pytest.mark.parametrize(
    ("loss", "after"),
    [
        (under_a_name, "logits=scores))"),
        (in_the_call, "(ONE_HOT, X @ WEIGHTS))"),
        (two_sigmoids, "(ONE_HOT, X @ WEIGHTS))"),
    ],
)
def test_the_edit_passes_the_logits(loss: Callable[[], Any], after: str) -> None:
    [finding] = tb_gradflow.explain(loss, args=(), variables=[WEIGHTS]).findings

    assert finding.edit is not None
    assert finding.edit.after.endswith(after)


def test_the_layer_with_the_softmax_is_named() -> None:
    hidden = keras.layers.Dense(4, "relu", name="hidden")
    kinds = keras.layers.Dense(3, "softmax", name="kinds")
    kinds(hidden(X))

    def loss() -> Any:
        return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=ONE_HOT, logits=kinds(hidden(X))))

    report = tb_gradflow.explain(loss, args=(), variables=[*hidden.trainable_variables, *kinds.trainable_variables])

    [finding] = report.findings
    assert "layer `kinds`" in finding.fix


@pytest.mark.parametrize(
    "loss",
    [
        a_teacher,
        labels_that_are_learned,
        logarithms_of_shares,
        scaled_shares,
        shares_as_labels_of_a_sigmoid,
        shares_that_are_learned_as_labels_of_a_sigmoid,
    ],
)
def test_probabilities_elsewhere_are_right(loss: Callable[[], Any]) -> None:
    report = tb_gradflow.explain(loss, args=(), variables=[WEIGHTS])

    assert all(each.cause != "probabilities_as_logits" for each in report.findings)
