"""Small forms of programs that others have written, on which a report was once wrong."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow
from tb_gradflow.serve.reports.report import Report

RANDOM = np.random.default_rng(5)
X = tf.constant(RANDOM.normal(size=(8, 4)), tf.float32)


def loud(report: Report) -> set[str]:
    return {finding.cause for finding in report.findings if finding.severity != "info"}


def test_an_absolute_error_does_not_sum_a_softmax() -> None:
    """The same size of gradient arrives at each probability, with different signs."""
    dead, alive = tf.Variable(tf.fill((4, 3), -1.0), name="dead"), tf.Variable(tf.ones((4, 3)), name="alive")
    labels = tf.one_hot(tf.range(8) % 3, 3)

    def loss() -> tf.Tensor:
        logits = X @ alive * tf.range(1.0, 4.0) + tf.nn.relu(tf.abs(X) @ dead)
        return tf.reduce_mean(tf.abs(labels - tf.nn.softmax(logits)))

    report = tb_gradflow.explain(loss, variables=[dead, alive])

    assert loud(report) == {"dead_relu"}


def test_a_term_is_found_behind_the_loss_that_replaces_it() -> None:
    weight = tf.Variable(RANDOM.normal(size=(4, 1)), dtype=tf.float32, name="weight")

    def loss() -> tf.Tensor:
        y = X @ weight
        share = tf.reduce_mean(tf.cast(y > 0.0, tf.float32))
        total = tf.reduce_mean(tf.square(y - 1.0)) + 5.0 * tf.square(share - 0.5)
        return tf.where(tf.math.is_nan(total), tf.reduce_mean(tf.square(y)), total)

    [finding] = tb_gradflow.explain(loss, variables=[weight]).findings

    assert (finding.cause, finding.severity) == ("nondiff_counting", "info")
    assert "from one term of the loss" in finding.message
    assert finding.source is not None
    assert "y > 0.0" in finding.source.code


def test_the_offset_of_a_kernel_that_is_not_trained_either_is_not_forgotten(tmp_path: Path) -> None:
    """A vector is searched for which a finished network has a certain output."""
    network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "tanh"), keras.layers.Dense(1)])
    searched = tf.Variable(X, name="searched")

    @tb_gradflow.watch(tmp_path)
    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(network(searched))
        searched.assign_sub(0.1 * tape.gradient(loss, searched))

    step()
    step.flush()

    assert loud(tb_gradflow.open_log(tmp_path).report()) == set()


def distance(samples: list[float]) -> float:
    counts, _ = np.histogram(samples, bins=3)
    return float(np.sum(np.abs(counts - np.mean(counts))))


def test_numbers_in_a_list_for_a_function_of_numpy() -> None:
    weight = tf.Variable(RANDOM.normal(size=(4, 1)), dtype=tf.float32, name="weight")

    def loss() -> tf.Tensor:
        losses = []
        for row in range(3):
            losses.append(float(tf.reduce_sum(X[row : row + 1] @ weight)))
        return tf.convert_to_tensor(distance(losses), dtype=tf.float32)

    [finding] = tb_gradflow.explain(loss, variables=[weight]).findings

    assert finding.cause == "python_escape"
    assert "leaves TensorFlow at `float()`" in finding.message
    assert finding.edit is None  # the list goes on to NumPy


def test_a_relu_whose_input_was_normalised_over_one_value_further_back() -> None:
    """The deepest level of a U-Net: the ReLU after the next convolution gets zeros only."""
    image = keras.Input((2, 2, 3))
    deep = keras.layers.Conv2D(4, 2, use_bias=False)(image)
    deep = keras.layers.GroupNormalization(groups=4, name="of_one")(deep)
    deep = keras.layers.Conv2DTranspose(4, 2, use_bias=False)(keras.layers.LeakyReLU()(deep))
    joined = keras.layers.Concatenate()([image, keras.layers.ReLU()(keras.layers.GroupNormalization(groups=4)(deep))])
    network = keras.Model(image, keras.layers.Conv2D(1, 1)(joined))
    pictures = tf.constant(RANDOM.normal(size=(8, 2, 2, 3)), tf.float32)

    network.compile("sgd", "mse")

    report = tb_gradflow.explain(network, pictures, tf.ones((8, 2, 2, 1)))

    assert loud(report) == {"degenerate_normalisation"}
    [finding] = [each for each in report.findings if each.severity != "info"]
    assert "in layer `of_one`" in finding.message


def test_a_remainder_is_kept_out_of_the_gradient() -> None:
    weight = tf.Variable([0.3, 1.6, 2.4], name="weight")

    def loss() -> tf.Tensor:
        whole = weight - tf.math.floormod(weight, 1.0)
        return tf.reduce_sum(tf.square(whole - 3.0))

    [finding] = tb_gradflow.explain(loss, variables=[weight], try_fixes=True).findings

    assert finding.cause == "nondiff_rounding"
    assert finding.edit is not None
    assert finding.edit.after.strip() == "whole = weight - tf.stop_gradient(tf.math.floormod(weight, 1.0))"
    assert finding.tried is not None
    assert finding.tried.works


def test_a_condition_has_no_gradient_and_that_is_right(tmp_path: Path) -> None:
    one, other = tf.Variable([1.0, 2.0], name="one"), tf.Variable([3.0, 4.0], name="other")

    @tb_gradflow.watch(tmp_path)
    def step(condition: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.where(condition, one, other) ** 2)
        for_one, for_other, _ = tape.gradient(loss, [one, other, condition])
        one.assign_sub(0.1 * for_one)
        other.assign_sub(0.1 * for_other)

    step(tf.constant([True, False]))
    step.flush()

    [finding] = tb_gradflow.open_log(tmp_path).report().findings

    assert (finding.cause, finding.severity, finding.edit) == ("integer_dtype", "info", None)


def test_a_term_of_each_row_has_no_gradient() -> None:
    """As in a loss function of Keras, which returns a number for each row."""
    weight = tf.Variable(RANDOM.normal(size=(4, 3)), dtype=tf.float32, name="weight")
    labels = tf.range(8) % 3

    def loss() -> tf.Tensor:
        logits = X @ weight
        rank = tf.cast(tf.argmax(logits, axis=-1), tf.float32)
        penalty = tf.abs(rank - tf.cast(labels, tf.float32)) / 2.0
        crossentropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return tf.reduce_mean(crossentropy + 0.25 * penalty)

    [finding] = tb_gradflow.explain(loss, variables=[weight]).findings

    assert (finding.cause, finding.severity) == ("nondiff_index", "info")
    assert "from one term of the loss" in finding.message


def test_an_array_that_a_write_returns_is_kept(tmp_path: Path) -> None:
    weight = tf.Variable(RANDOM.normal(size=(4, 4)), dtype=tf.float32, name="weight")

    def loss() -> tf.Tensor:
        states, state = tf.TensorArray(tf.float32, size=3), X
        for turn in range(3):
            state = tf.tanh(state @ weight)
            states.write(turn, state)
        return tf.reduce_mean(tf.square(states.stack() - 1.0))

    [finding] = tb_gradflow.explain(tf.function(loss), variables=[weight], try_fixes=True).findings

    assert finding.cause == "output_not_used"
    assert finding.edit is not None
    assert finding.edit.after.strip() == "states = states.write(turn, state)"
