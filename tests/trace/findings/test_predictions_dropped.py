"""A dropout between the last layer and the targets, and dropouts and masks that are meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import tb_gradflow

X = np.random.default_rng(0).normal(size=(48, 5)).astype("float32")
CLASSES = np.arange(48) % 3
ONE_HOT = np.eye(3, dtype="float32")[CLASSES]
LOGITS = keras.losses.CategoricalCrossentropy(from_logits=True)
BINARY = keras.losses.BinaryCrossentropy(from_logits=True)


def model(*last: Any) -> Any:
    keras.utils.set_random_seed(3)
    return keras.Sequential([keras.Input((5,)), layers.Dense(8, "tanh"), *last])


def dropped() -> Any:
    return layers.Dropout(0.5, name="dropped")


def loud(report: tb_gradflow.Report) -> list[str]:
    return [each.cause for each in report.findings if each.severity != "info"]


LAST: dict[str, tuple[Callable[[], tuple[Any, ...]], Any, Any]] = {
    "logits": (lambda: (layers.Dense(3), dropped()), LOGITS, ONE_HOT),
    "in front of the softmax": (
        lambda: (layers.Dense(3), dropped(), layers.Activation("softmax")),
        "categorical_crossentropy",
        ONE_HOT,
    ),
    "the same, labels that are indices": (
        lambda: (layers.Dense(3), dropped(), layers.Activation("softmax")),
        "sparse_categorical_crossentropy",
        CLASSES,
    ),
    "probabilities": (lambda: (layers.Dense(3, "softmax"), dropped()), "categorical_crossentropy", ONE_HOT),
    "logits of two classes": (lambda: (layers.Dense(3), dropped()), BINARY, ONE_HOT),
    "probabilities of two classes": (lambda: (layers.Dense(3, "sigmoid"), dropped()), "binary_crossentropy", ONE_HOT),
    "numbers": (lambda: (layers.Dense(3), dropped()), "mse", X[:, :3]),
}


@pytest.mark.parametrize("how", LAST)
def test_predictions_that_are_dropped_are_named(how: str) -> None:
    last, loss, y = LAST[how]
    network = model(*last())
    network.compile("sgd", loss)

    report = tb_gradflow.explain(network, X, y)

    assert "predictions_dropped" in loud(report)
    finding = next(each for each in report.findings if each.cause == "predictions_dropped")
    assert set(finding.variables) == {name for name, each in report.variables.items() if each.status != "frozen"}
    assert "the dropout `dropped`" in finding.message
    assert ("logits" if "logits" in how or "softmax" in how else "predictions") in finding.message or "same" in how


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_a_training_whose_logits_are_dropped(tmp_path: Path, *, run_eagerly: bool) -> None:
    network = model(layers.Dense(3), dropped(), layers.Activation("softmax"))
    network.compile("adam", "categorical_crossentropy", run_eagerly=run_eagerly)

    network.fit(X, ONE_HOT, epochs=2, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    report = tb_gradflow.open_log(tmp_path).report()
    assert loud(report) == ["predictions_dropped"]
    assert report.to_dict()["verdict"]["kind"] == "labels"


class Attention(layers.Layer):
    """Weights that are dropped, as in a transformer."""

    def build(self, shape: Any) -> None:
        self.scores = layers.Dense(5)
        self.scores.build(shape)
        self.drop = layers.Dropout(0.2)

    def call(self, x: Any, training: bool | None = None) -> Any:
        return self.drop(tf.nn.softmax(self.scores(x)), training=training) * x


HEALTHY: dict[str, tuple[Callable[[], tuple[Any, ...]], Any, Any]] = {
    "before the last layer": (lambda: (dropped(), layers.Dense(3, "softmax")), "categorical_crossentropy", ONE_HOT),
    "attention": (lambda: (layers.Dense(5), Attention(), layers.Dense(3)), LOGITS, ONE_HOT),
    "weights of experts": (lambda: (layers.Dense(5), layers.Softmax(), dropped(), layers.Dense(3)), "mse", X[:, :3]),
    "noise in front of a sigmoid": (
        lambda: (layers.Dense(3), layers.GaussianNoise(0.1), layers.Activation("sigmoid")),
        "binary_crossentropy",
        ONE_HOT,
    ),
}


@pytest.mark.parametrize("how", HEALTHY)
def test_dropouts_that_weights_follow_are_not(how: str) -> None:
    last, loss, y = HEALTHY[how]
    network = model(*last())
    network.compile("sgd", loss)

    assert loud(tb_gradflow.explain(network, X, y)) == []


def of_loop(compute: Any) -> list[str]:
    keras.utils.set_random_seed(4)
    dense = layers.Dense(3)
    dense.build((None, 5))
    return loud(tb_gradflow.explain(lambda x, y: compute(dense(x), y), args=(X, X[:, :3]), variables=dense.weights))


def test_a_mask_that_chooses_what_is_to_be_predicted_is_meant() -> None:
    def masked(p: Any, y: Any) -> Any:
        chosen = tf.random.uniform(tf.shape(y)) < 0.3
        return tf.reduce_mean((tf.where(chosen, y, 0.0) - tf.where(chosen, p, 0.0)) ** 2)

    def counted(p: Any, y: Any) -> Any:
        chosen = tf.random.uniform(tf.shape(y)) < 0.3
        return tf.reduce_mean(tf.where(chosen, (y - p) ** 2, 0.0))

    assert of_loop(masked) == of_loop(counted) == []


def test_predictions_that_a_loop_drops_are_named() -> None:
    assert of_loop(lambda p, y: tf.reduce_mean((y - tf.nn.dropout(p, 0.4)) ** 2)) == ["predictions_dropped"]


@pytest.mark.parametrize(("rate", "causes"), [(0.4, ["predictions_dropped"]), (0.0, [])])
def test_a_rate_that_is_given_may_be_zero(rate: float, causes: list[str]) -> None:
    keras.utils.set_random_seed(4)
    dense = layers.Dense(3)
    dense.build((None, 5))

    def loss(x: Any, y: Any, part: Any) -> Any:
        return tf.reduce_mean((y - tf.nn.dropout(dense(x), part)) ** 2)

    args = X, X[:, :3], tf.constant(rate)
    assert loud(tb_gradflow.explain(loss, args=args, variables=dense.weights)) == causes
