"""One norm for all rows of a batch, and the norms that are none of that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers, ops

import tb_gradflow

X = np.random.default_rng(0).normal(size=(8, 5)).astype("float32")
PICTURES = np.random.default_rng(0).normal(size=(8, 6, 6, 2)).astype("float32")


def loud(model: Any, x: Any) -> list[str]:
    """The causes of the errors and warnings of a model that is to return ones."""
    model.compile("sgd", "mse")
    report = tb_gradflow.explain(model, x, np.ones(model.compute_output_shape(x.shape), "float32"))
    return [each.cause for each in report.findings if each.severity != "info"]


def dense(*behind: Any) -> Any:
    keras.utils.set_random_seed(4)
    return keras.Sequential([keras.Input((5,)), layers.Dense(6, activation="tanh"), *behind])


@pytest.mark.parametrize(
    "normalise",
    [
        tf.math.l2_normalize,
        lambda x: x / tf.norm(x),
        lambda x: ops.divide(x, ops.sqrt(ops.sum(ops.square(x)) + 1e-6)),
        lambda x: tf.linalg.normalize(x)[0],
    ],
)
def test_a_norm_over_all_rows_is_named(normalise: Callable[[Any], Any]) -> None:
    assert loud(dense(layers.Dense(3), layers.Lambda(normalise)), X) == ["normalised_over_batch"]


def test_a_norm_over_all_pictures_is_named() -> None:
    keras.utils.set_random_seed(4)
    inputs = keras.Input((6, 6, 2))
    features = layers.Conv2D(4, 3, activation="relu")(inputs)
    outputs = layers.GlobalAveragePooling2D()(layers.Lambda(tf.math.l2_normalize)(features))

    assert loud(keras.Model(inputs, outputs), PICTURES) == ["normalised_over_batch"]


class WeightOfNormOne(layers.Layer):
    def build(self, shape: Any) -> None:
        self.kernel = self.add_weight(shape=(shape[-1], 3), name="kernel")

    def call(self, x: Any) -> Any:
        return x @ tf.math.l2_normalize(self.kernel)


@pytest.mark.parametrize(
    "layer",
    [
        layers.Lambda(lambda x: tf.math.l2_normalize(x, axis=-1)),
        layers.Lambda(lambda x: tf.math.l2_normalize(x, axis=0)),
        layers.UnitNormalization(),
        layers.Lambda(lambda x: x / ops.sqrt(ops.mean(ops.square(x)))),
        layers.Lambda(lambda x: x * ops.sum(ops.square(x)) * 0.01),
        WeightOfNormOne(),
        layers.BatchNormalization(),
    ],
)
def test_other_norms_are_healthy(layer: Any) -> None:
    assert loud(dense(layer), X) == []


def test_a_kernel_matrix_of_all_rows_is_healthy() -> None:
    """Centred kernel alignment compares such matrices as a whole."""
    keras.utils.set_random_seed(4)
    model = dense(layers.Dense(3))

    def loss() -> Any:
        outputs = model(X)
        gram = outputs @ tf.transpose(outputs)
        return -tf.reduce_sum(tf.math.l2_normalize(gram) * tf.math.l2_normalize(X @ X.T))

    assert tb_gradflow.explain(loss, variables=model.trainable_variables).healthy


def cross_entropy(labels: Any, probabilities: Any) -> Any:
    return -tf.reduce_mean(tf.reduce_sum(labels * tf.math.log(tf.maximum(probabilities, 1e-7)), axis=-1))


@pytest.mark.parametrize("loss", [cross_entropy, keras.losses.CategoricalCrossentropy(from_logits=False)])
def test_a_softmax_over_the_rows_is_named_and_turned(loss: Callable[[Any, Any], Any]) -> None:
    model, labels = dense(layers.Dense(3)), tf.one_hot(tf.range(8) % 3, 3)

    def mixed() -> Any:
        probabilities = tf.nn.softmax(model(X), axis=0)
        return loss(labels, probabilities)

    report = tb_gradflow.explain(mixed, variables=model.trainable_variables, try_fixes=True)
    [finding] = [each for each in report.findings if each.severity != "info"]

    assert finding.cause == "normalised_over_batch"
    assert finding.edit is not None
    assert finding.edit.after.endswith("probabilities = tf.nn.softmax(model(X), axis=-1)")
    assert finding.tried is not None
    assert finding.tried.works


def test_a_softmax_over_rows_that_are_compared_with_each_other_is_healthy() -> None:
    """Contrastive losses of pairs look for the partner of a row, and for that of a column; experts choose tokens."""
    model, router = dense(layers.Dense(4)), tf.Variable(np.ones((4, 2), "float32"), name="router")

    def loss() -> Any:
        rows, labels = model(X), tf.eye(8)
        similarity = rows @ tf.transpose(rows + 0.1)
        chosen = tf.nn.softmax(rows @ router, axis=0)
        columns = tf.nn.softmax(similarity, axis=0)
        return cross_entropy(labels, columns) + tf.reduce_sum(tf.square(tf.transpose(chosen) @ rows))

    report = tb_gradflow.explain(loss, variables=[*model.trainable_variables, router])

    assert "normalised_over_batch" not in {each.cause for each in report.findings}
