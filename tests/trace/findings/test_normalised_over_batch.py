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


@pytest.mark.parametrize(
    "picked",
    [
        lambda p, labels: tf.reduce_sum(p * tf.one_hot(labels, 3), axis=1),
        lambda p, labels: tf.gather(p, labels, batch_dims=1),
    ],
)
def test_a_probability_that_is_picked_before_its_logarithm(picked: Callable[[Any, Any], Any]) -> None:
    model, labels = dense(layers.Dense(3)), tf.range(8) % 3

    def mixed() -> Any:
        return -tf.reduce_mean(tf.math.log(picked(tf.nn.softmax(model(X), axis=0), labels) + 1e-7))

    report = tb_gradflow.explain(mixed, variables=model.trainable_variables)

    assert [each.cause for each in report.findings if each.severity != "info"] == ["normalised_over_batch"]


def test_instances_of_one_bag_compete_and_are_healthy() -> None:
    """A softmax over the instances weights them, and only their sum is classified."""
    model, head = dense(layers.Dense(1)), tf.Variable(np.ones((5, 3), "float32"), name="head")

    def loss() -> Any:
        bag = tf.reduce_sum(tf.nn.softmax(model(X), axis=0) * X, axis=0, keepdims=True)
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits([1], bag @ head))

    report = tb_gradflow.explain(loss, variables=[*model.trainable_variables, head])

    assert "normalised_over_batch" not in {each.cause for each in report.findings}


@pytest.mark.parametrize(
    ("model", "labels", "said"),
    [
        (lambda: [keras.Input((5,)), layers.Dense(3), layers.Softmax(axis=0)], (8,), "over the rows of the batch"),
        (
            lambda: [keras.Input((6, 2)), layers.Dense(3), layers.Softmax(axis=1)],
            (8, 6),
            "over another axis than the classes, `axis=1`",
        ),
    ],
)
def test_an_output_that_the_loss_does_not_see(model: Callable[[], Any], labels: Any, said: str) -> None:
    """Keras takes the scores in front of the softmax."""
    keras.utils.set_random_seed(4)
    built = keras.Sequential(model())
    built.compile("sgd", "sparse_categorical_crossentropy")
    x = np.random.default_rng(0).normal(size=(8, *built.input_shape[1:])).astype("float32")

    report = tb_gradflow.explain(built, x, np.arange(np.prod(labels)).reshape(labels) % 3)

    [finding] = [each for each in report.findings if each.severity != "info"]
    assert finding.cause == "normalised_over_batch"
    assert said in finding.message
    assert report.summary.startswith("The output of the model is normalised over the wrong axis")


def test_a_softmax_over_the_classes_is_healthy() -> None:
    keras.utils.set_random_seed(4)
    built = keras.Sequential([keras.Input((5,)), layers.Dense(3), layers.Softmax()])
    built.compile("sgd", "sparse_categorical_crossentropy")

    assert tb_gradflow.explain(built, X, np.arange(8) % 3).healthy


@pytest.mark.parametrize(
    ("normalise", "is_told"),
    [
        (lambda x: x / tf.reduce_max(x), True),
        (lambda x: x / (tf.reduce_max(x) + 1e-6), True),
        (lambda x: x / (tf.reduce_max(x, axis=-1, keepdims=True) + 2.0), False),
        (lambda x: tf.exp(x - tf.reduce_max(x)), False),
    ],
)
def test_the_largest_of_all_rows(normalise: Callable[[Any], Any], *, is_told: bool) -> None:
    assert loud(dense(layers.Lambda(normalise)), X) == ["normalised_over_batch"] * is_told
