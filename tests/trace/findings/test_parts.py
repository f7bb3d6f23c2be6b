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

    assert (finding.cause, finding.severity) == ("output_not_used", "info")
    assert finding.variables == ("kernel", "bias")
    assert "in 33% of their elements: `out[:, 2]` (test_parts.py:" in finding.message


def test_the_part_of_a_split_that_the_loss_does_not_use_is_named() -> None:
    variables, head = outputs(4)

    def loss() -> tf.Tensor:
        mean, spread = tf.split(head(), 2, axis=-1)
        assert spread.shape == mean.shape
        return tf.reduce_mean(tf.square(mean - Y))

    finding = only_finding(tb_gradflow.explain(loss, variables=variables))

    assert (finding.cause, finding.severity) == ("output_not_used", "info")
    assert "in 50% of their elements: `spread`, which `tf.split` (test_parts.py:" in finding.message


def test_outputs_that_are_left_out_are_information() -> None:
    variables, head = outputs(5)

    finding = only_finding(
        tb_gradflow.explain(lambda: tf.reduce_mean(tf.square(head()[:, :2] - Y)), variables=variables)
    )

    assert (finding.cause, finding.severity) == ("output_not_used", "info")


def test_a_part_that_the_user_discards_is_none() -> None:
    variables, head = outputs(4)

    def loss() -> tf.Tensor:
        mean, _ = tf.split(head(), 2, axis=-1)
        return tf.reduce_mean(tf.square(mean - Y))

    assert not tb_gradflow.explain(loss, variables=variables).findings


def test_only_names_of_the_parts_themselves_are_told() -> None:
    variables, head = outputs(4)

    def loss() -> tf.Tensor:
        _, mean = tf.split(head(), 2, axis=-1)[::-1]
        return tf.reduce_mean(tf.square(mean - Y))

    finding = only_finding(tb_gradflow.explain(loss, variables=variables))

    assert "a part of its result, which `tf.split`" in finding.message


@pytest.mark.parametrize("logged", [slice(0, 1), slice(0, 2), slice(None)])
def test_a_slice_that_is_logged_too_is_not_the_one_that_is_left_out(logged: slice) -> None:
    """The loss uses columns 0 and 1 of 3."""
    variables, head = outputs(3)

    def loss() -> tf.Tensor:
        out = head()
        tf.reduce_mean(out[:, logged])
        return tf.reduce_mean(tf.square(out[:, 0:1] - Y) + tf.square(out[:, 1:2]))

    report = tb_gradflow.explain(loss, variables=variables)

    assert not [finding for finding in report.findings if "does not reach" in finding.message]


def test_each_of_two_causes_is_told_with_its_own_count() -> None:
    variables, head = outputs(5)

    def loss() -> tf.Tensor:
        out = head()
        unused = out[:, 2:4]
        assert unused.shape == (16, 2)
        return tf.reduce_mean(out[:, :1] + tf.round(out[:, 1:2]) + out[:, 4:])

    finding = only_finding(tb_gradflow.explain(loss, variables=variables))

    assert (finding.cause, finding.severity) == ("nondiff_rounding", "warning")
    assert "in 20% of their elements" in finding.message


def test_an_element_that_python_reads_is_used() -> None:
    """Whether Python should read it is not known: it may choose by it, or keep it out of the gradient on purpose."""
    pair = tf.Variable([1.5, 3.4], name="pair")

    def loss() -> tf.Tensor:
        return tf.reduce_mean(tf.sin(pair[0] * X) * int(pair[1]))

    finding = only_finding(tb_gradflow.explain(loss, variables=[pair]))

    assert (finding.cause, finding.severity, finding.edit) == ("python_escape", "info", None)


def test_a_part_by_which_a_branch_is_chosen_is_information() -> None:
    """A greedy action."""
    variables, head = outputs(2)

    def loss() -> tf.Tensor:
        values = head()[0]
        action = 0 if values[0] > values[1] else 1
        return tf.square(1.0 - values[action])

    report = tb_gradflow.explain(loss, variables=variables)

    assert not [finding for finding in report.findings if finding.severity != "info"]


def test_all_parts_of_a_split_that_are_not_used_are_counted() -> None:
    variables, head = outputs(4)

    def loss() -> tf.Tensor:
        first, second, third, fourth = tf.unstack(head(), axis=-1)
        assert third.shape == fourth.shape
        return tf.reduce_mean(tf.square(first) + second)

    finding = only_finding(tb_gradflow.explain(loss, variables=variables))

    assert "in 50% of their elements: `third` and `fourth`, which" in finding.message


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


def rows_of_a_table() -> tuple[Callable[[], tf.Tensor], list[tf.Variable]]:
    """Only some rows are read, and none of them lies outside of the limits."""
    table = tf.Variable(tf.zeros([16, 4]), name="table")
    return lambda: tf.reduce_mean(tf.clip_by_value(tf.nn.embedding_lookup(table, [1, 2, 5]), -1.0, 1.0) + 1.0), [table]


def a_limit_that_is_learned() -> tuple[Callable[[], tf.Tensor], list[tf.Variable]]:
    caps = tf.Variable([0.1, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0], name="caps")
    return lambda: tf.reduce_mean(tf.square(tf.minimum(X, caps))), [caps]


def larger_of_two() -> tuple[Callable[[], tf.Tensor], list[tf.Variable]]:
    first, second = tf.Variable([1.0, 2.0, 3.0], name="first"), tf.Variable([3.0, 1.0, 1.0], name="second")
    return lambda: tf.reduce_mean(X[:, :3] * tf.maximum(first, second)), [first, second]


def states_of_a_layer() -> tuple[Callable[[], tf.Tensor], list[tf.Variable]]:
    """The layer takes its last state out of the sequence, and the loss uses the others."""
    layer = keras.layers.LSTM(4, return_sequences=True)
    layer.build((2, 6, 8))
    places = tf.Variable(RANDOM.normal(size=(6, 8)), dtype=tf.float32, name="places")

    def loss() -> tf.Tensor:
        return tf.reduce_mean(tf.square(layer(tf.reshape(X[:12], (2, 6, 8)) + places)[:, :-1]))

    return loss, [places, *(each.value for each in layer.trainable_weights)]


@pytest.mark.parametrize(
    "program",
    [
        last_of_a_sequence,
        stopped_on_purpose,
        half_of_a_relu,
        rows_of_a_table,
        a_limit_that_is_learned,
        larger_of_two,
        states_of_a_layer,
    ],
)
def test_there_is_no_alarm(program: Callable[[], tuple[Callable[[], tf.Tensor], list[tf.Variable]]]) -> None:
    loss, variables = program()

    report = tb_gradflow.explain(loss, variables=variables)

    assert not [finding for finding in report.findings if finding.severity != "info"]
