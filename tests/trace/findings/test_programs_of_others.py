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
