"""Gradients of which rounding leaves noise, and words that look like others: what `explain` makes of them."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.record.report import Finding

RANDOM = np.random.default_rng(0)
X = tf.constant(RANDOM.normal(size=(8, 4)).astype(np.float32))
CLASSES = tf.constant([0, 1, 2, 0, 1, 2, 0, 1])


def variable(*shape: int, name: str) -> Any:
    return tf.Variable(RANDOM.normal(size=shape).astype(np.float32), name=name)


def found(loss: Any, *variables: Any) -> list[Finding]:
    return list(tb_gradflow.explain(loss, variables=list(variables)).findings)


@pytest.mark.parametrize("attempt", range(3))
def test_a_softmax_of_one_class_is_told_whatever_rounding_leaves(attempt: int) -> None:
    gate, values = variable(4, 1, name="gate"), variable(4, 3, name="values")

    [finding] = found(lambda: tf.reduce_mean(tf.square(tf.nn.softmax(X @ gate) * (X @ values))), gate, values)

    assert (finding.cause, finding.variables) == ("softmax_single_class", ("gate",))
    assert "The output of the model is constant" not in finding.message


def test_a_sigmoid_as_a_gate_is_fine() -> None:
    gate, values = variable(4, 1, name="gate"), variable(4, 3, name="values")

    assert found(lambda: tf.reduce_mean(tf.square(tf.sigmoid(X @ gate) * (X @ values))), gate, values) == []


@pytest.mark.parametrize("attempt", range(3))
def test_an_offset_of_all_classes_has_no_influence(attempt: int) -> None:
    weights, offset = variable(4, 3, name="weights"), variable(name="offset")

    def loss() -> Any:
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(CLASSES, X @ weights + offset))

    [finding] = found(loss, weights, offset)

    assert finding.variables == ("offset",)
    assert (finding.cause, finding.severity) == ("shift_invariant_parameter", "info")
    assert "softmax" in finding.message


def test_an_accuracy_is_counted_and_not_drawn() -> None:
    weights = variable(4, 3, name="weights")

    def loss() -> Any:
        return 1.0 - tf.reduce_mean(keras.metrics.sparse_categorical_accuracy(CLASSES, X @ weights))

    [finding] = found(loss, weights)

    assert finding.cause == "nondiff_counting"
    assert "crossentropy" in finding.fix


def test_a_layer_normalisation_of_one_unit_is_no_matter_of_the_batch() -> None:
    weights, normalised = variable(4, 1, name="weights"), keras.layers.LayerNormalization()
    normalised.build((8, 1))

    findings = found(lambda: tf.reduce_mean(tf.square(normalised(X @ weights) - 1.0)), weights)

    assert [finding.cause for finding in findings] == ["degenerate_normalisation"]
    assert "batch" not in findings[0].fix


def test_a_relu_with_a_threshold_of_its_own_is_dead_like_others() -> None:
    hidden, last = variable(4, 3, name="hidden"), variable(3, 1, name="last")

    def loss() -> Any:
        return tf.reduce_mean(tf.square(keras.activations.relu(X @ hidden, threshold=50.0) @ last - 1.0))

    assert {finding.cause for finding in found(loss, hidden, last)} == {"dead_relu"}


def test_of_several_comparisons_on_a_line_none_is_guessed() -> None:
    weights = variable(4, 1, name="weights")

    def loss() -> Any:
        above, labels = tf.cast(X @ weights > 0.5, tf.float32), tf.cast(X[:, :1] > 0.2, tf.float32)
        return 1.0 - tf.reduce_mean(above * labels)

    [finding] = found(loss, weights)

    assert finding.cause == "nondiff_comparison"
    assert "X[" not in finding.fix
