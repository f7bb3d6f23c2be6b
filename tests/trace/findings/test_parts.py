"""Only some elements of a variable get a gradient: the others, or what is computed from them, go another way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.record.report import Finding
from tb_gradflow.serve.reports.report import Report

RANDOM = np.random.default_rng(5)
X = tf.constant(RANDOM.normal(size=(16, 8)), tf.float32)
Y = tf.constant(RANDOM.normal(size=(16, 2)), tf.float32)


def outputs(count: int) -> tuple[list[tf.Variable], Callable[[], tf.Tensor]]:
    """A layer with some outputs."""
    kernel = tf.Variable(RANDOM.normal(size=(8, count)), dtype=tf.float32, name="kernel")
    bias = tf.Variable(tf.zeros(count), name="bias")
    return [kernel, bias], lambda: X @ kernel + bias


def only_finding(report: Report) -> Finding:
    [finding] = report.findings
    return finding


def cut_by_rounding() -> tuple[Callable[[], tf.Tensor], list[tf.Variable]]:
    variables, head = outputs(4)

    def loss() -> tf.Tensor:
        out = head()
        corner = tf.round(out[:, 1:] * 4.0)
        return tf.reduce_mean(tf.square(out[:, :1] + tf.reduce_sum(corner, -1, keepdims=True)))

    return loss, variables


def cut_by_argmax() -> tuple[Callable[[], tf.Tensor], list[tf.Variable]]:
    variables, head = outputs(4)

    def loss() -> tf.Tensor:
        first, *others = tf.unstack(head(), axis=-1)
        return tf.reduce_mean(first * tf.cast(tf.argmax(tf.stack(others), axis=0), tf.float32))

    return loss, variables


def cut_by_comparison() -> tuple[Callable[[], tf.Tensor], list[tf.Variable]]:
    knots = tf.Variable([-0.5, 0.0, 0.5, 1.0], name="knots")

    def loss() -> tf.Tensor:
        total = tf.zeros(16)
        for place in range(3):
            total += knots[3] * tf.cast(X[:, 0] > knots[place], tf.float32)
        return tf.reduce_mean(tf.square(total - Y[:, 0]))

    return loss, [knots]


@pytest.mark.parametrize(
    ("program", "cause"),
    [
        (cut_by_rounding, "nondiff_rounding"),
        (cut_by_argmax, "nondiff_index"),
        (cut_by_comparison, "nondiff_comparison"),
    ],
)
def test_what_cuts_off_a_part_is_named(
    program: Callable[[], tuple[Callable[[], tf.Tensor], list[tf.Variable]]], cause: str
) -> None:
    loss, variables = program()

    report = tb_gradflow.explain(loss, variables=variables)

    finding = only_finding(report)
    assert (finding.cause, finding.severity) == (cause, "warning")
    assert set(finding.variables) == {variable.name.removesuffix(":0") for variable in variables}
    assert "in 75% of their elements" in finding.message or "in 3 of its 4 elements" in finding.message
    assert "a gradient in only some elements" in report.summary
    with tf.GradientTape() as tape:
        value = loss()
    for variable, gradient in zip(variables, tape.gradient(value, variables), strict=True):
        by_output = np.count_nonzero(tf.convert_to_tensor(gradient).numpy().reshape(-1, variable.shape[-1]), axis=0)
        assert np.count_nonzero(by_output == 0) == 3


def test_a_slice_that_the_loss_does_not_use_is_named() -> None:
    variables, head = outputs(3)

    def loss() -> tf.Tensor:
        out = head()
        x, y, z = out[:, 0], out[:, 1], out[:, 2]
        z = tf.tanh(z)
        return tf.reduce_mean(tf.square(x - Y[:, 0]) + tf.square(y - Y[:, 1]))

    finding = only_finding(tb_gradflow.explain(loss, variables=variables))

    assert (finding.cause, finding.severity) == ("output_not_used", "warning")
    assert finding.variables == ("kernel", "bias")
    assert "`out[:, 2]` (test_parts.py:" in finding.message


def test_the_part_of_a_split_that_the_loss_does_not_use_is_named() -> None:
    variables, head = outputs(4)

    def loss() -> tf.Tensor:
        mean, spread = tf.split(head(), 2, axis=-1)  # noqa: RUF059
        return tf.reduce_mean(tf.square(mean - Y))

    finding = only_finding(tb_gradflow.explain(loss, variables=variables))

    assert (finding.cause, finding.severity) == ("output_not_used", "warning")
    assert "`spread`, which `tf.split` (test_parts.py:" in finding.message


def test_outputs_that_are_left_out_are_information() -> None:
    variables, head = outputs(5)

    finding = only_finding(
        tb_gradflow.explain(lambda: tf.reduce_mean(tf.square(head()[:, :2] - Y)), variables=variables)
    )

    assert (finding.cause, finding.severity) == ("output_not_used", "info")


def test_an_element_that_python_reads_is_used() -> None:
    pair = tf.Variable([1.5, 3.4], name="pair")

    def loss() -> tf.Tensor:
        return tf.reduce_mean(tf.sin(pair[0] * X) * int(pair[1]))

    finding = only_finding(tb_gradflow.explain(loss, variables=[pair]))

    assert finding.cause == "python_escape"


def test_elements_beyond_a_clip_are_named(tmp_path: Path) -> None:
    weights = tf.Variable([1.5, 0.4, -0.3], name="weights")

    @tb_gradflow.watch(tmp_path)
    @tf.function
    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(X[:, :3] * tf.clip_by_value(weights, 0.0, 1.0))
        weights.assign_sub(0.1 * tape.gradient(loss, weights))

    for _ in range(3):
        step()
    step.flush()

    finding = only_finding(tb_gradflow.open_log(tmp_path).report())
    assert (finding.cause, finding.severity) == ("saturation_clip", "warning")
    assert "in 2 of its 3 elements: `tf.clip_by_value`" in finding.message
    assert "`weights.assign(tf.clip_by_value(weights, 0.0, 1.0))`" in finding.fix
    np.testing.assert_array_equal(weights.numpy()[[0, 2]], np.array([1.5, -0.3], np.float32))


def last_of_a_sequence() -> tuple[Callable[[], tf.Tensor], list[tf.Variable]]:
    """Of a table, some rows are needed, and of what is computed from it, the last step."""
    layer, dense = keras.layers.LSTM(6, return_sequences=True), keras.layers.Dense(32, "relu")
    layer.build((2, 6, 8))
    dense.build((2, 6, 6))
    table = tf.Variable(RANDOM.normal(size=(12, 8)), dtype=tf.float32, name="table")

    def loss() -> tf.Tensor:
        sequence = dense(layer(tf.reshape(X[:12], (2, 6, 8)) + table[:6]))
        before, last = sequence[:, :-1], sequence[:, -1]
        return tf.reduce_mean(tf.square(last)) + 0.0 * tf.cast(tf.shape(before)[0], tf.float32)

    return loss, [table, *(each.value for each in (*layer.trainable_weights, *dense.trainable_weights))]


def stopped_on_purpose() -> tuple[Callable[[], tf.Tensor], list[tf.Variable]]:
    variables, head = outputs(2)

    def loss() -> tf.Tensor:
        value, target = tf.unstack(head(), axis=-1)
        return tf.reduce_mean(tf.square(value - tf.stop_gradient(target)))

    return loss, variables


def half_of_a_relu() -> tuple[Callable[[], tf.Tensor], list[tf.Variable]]:
    variables, head = outputs(4)
    variables[1].assign([-50.0, -50.0, 1.0, 1.0])
    return lambda: tf.reduce_mean(tf.square(tf.nn.relu(head())[:, 1:])), variables


@pytest.mark.parametrize("program", [last_of_a_sequence, stopped_on_purpose, half_of_a_relu])
def test_there_is_no_alarm(program: Callable[[], tuple[Callable[[], tf.Tensor], list[tf.Variable]]]) -> None:
    loss, variables = program()

    report = tb_gradflow.explain(loss, variables=variables)

    assert not [finding for finding in report.findings if finding.severity != "info"]
