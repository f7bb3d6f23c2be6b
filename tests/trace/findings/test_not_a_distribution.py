"""A last activation that is no softmax under a categorical cross-entropy, and the models for which that is right."""

from __future__ import annotations

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


def model(*last: Any) -> Any:
    keras.utils.set_random_seed(3)
    return keras.Sequential([keras.Input((5,)), layers.Dense(8, activation="tanh", name="hidden"), *last])


def loud(report: tb_gradflow.Report) -> list[str]:
    return [each.cause for each in report.findings if each.severity != "info"]


def sigmoids() -> Any:
    return layers.Dense(3, activation="sigmoid", name="last")


@pytest.mark.parametrize(
    ("loss", "y"),
    [
        ("categorical_crossentropy", ONE_HOT),
        ("sparse_categorical_crossentropy", CLASSES),
        (keras.losses.CategoricalCrossentropy(label_smoothing=0.1), ONE_HOT),
    ],
)
def test_sigmoids_under_a_categorical_cross_entropy_are_named(loss: Any, y: Any) -> None:
    network = model(sigmoids())
    network.compile("sgd", loss)

    report = tb_gradflow.explain(network, X, y)

    assert loud(report) == ["not_a_distribution"]
    [finding] = report.findings
    assert set(finding.variables) == set(report.variables)
    assert "layer `last` ends in a sigmoid" in finding.message
    assert report.to_dict()["verdict"]["kind"] == "labels"


def test_the_sigmoid_is_no_part_of_the_loss_and_is_named_in_a_fit(tmp_path: Path) -> None:
    network = model(layers.Dense(3, name="scores"), layers.Activation("sigmoid"))
    network.compile("sgd", "categorical_crossentropy", metrics=["accuracy"])

    network.fit(X, ONE_HOT, epochs=2, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    assert loud(tb_gradflow.open_log(tmp_path).report()) == ["not_a_distribution"]


def test_probabilities_that_the_loss_divides_by_their_sum_are_named() -> None:
    """It knows the scores in front of a sigmoid of Keras, and not those in front of TensorFlow's."""
    network = model(layers.Dense(3, name="scores"), layers.Lambda(tf.nn.softplus))
    network.compile("sgd", "categorical_crossentropy")

    report = tb_gradflow.explain(network, X, ONE_HOT)

    assert loud(report) == ["not_a_distribution"]
    assert "divides each row by its sum" in report.findings[0].message


def test_the_edit_ends_the_model_with_a_softmax(tmp_path: Path) -> None:
    network = keras.Sequential(
        [
            keras.Input((5,)),
            layers.Dense(3, activation="sigmoid", name="scored"),
        ]
    )
    network.compile("sgd", "categorical_crossentropy")

    network.fit(X, ONE_HOT, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert finding.edit is not None
    assert 'layers.Dense(3, activation="softmax", name="scored")' in finding.edit.after


def test_the_edit_changes_no_other_layer(tmp_path: Path) -> None:
    network = keras.Sequential(
        [
            keras.Input((5,)),
            layers.Dense(8, activation="relu", name="in_front_of_scores"),
            layers.Dense(3, name="the_scores"),
            layers.Activation("sigmoid", name="each_of_scores"),
        ]
    )
    network.compile("sgd", "categorical_crossentropy")

    network.fit(X, ONE_HOT, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert finding.edit is not None
    assert 'layers.Activation("softmax", name="each_of_scores")' in finding.edit.after
    assert 'activation="softmax"' not in finding.edit.after


@pytest.mark.parametrize(
    ("last", "loss", "y"),
    [
        (layers.Dense(3, activation="softmax"), "categorical_crossentropy", ONE_HOT),
        (layers.Dense(3), keras.losses.CategoricalCrossentropy(from_logits=True), ONE_HOT),
        (layers.Dense(3, activation="sigmoid"), "binary_crossentropy", ONE_HOT),
        (layers.Dense(3, activation="sigmoid"), "mse", ONE_HOT),
        (layers.Dense(1, activation="sigmoid"), "binary_crossentropy", ONE_HOT[:, :1]),
    ],
)
def test_what_fits_its_loss_is_not_named(last: Any, loss: Any, y: Any) -> None:
    network = model(last)
    network.compile("sgd", loss)

    assert loud(tb_gradflow.explain(network, X, y)) == []


def test_a_softmax_by_hand_is_not_named() -> None:
    network = model(layers.Dense(3), layers.Lambda(lambda x: tf.exp(x) / tf.reduce_sum(tf.exp(x), -1, keepdims=True)))
    network.compile("sgd", "categorical_crossentropy")

    assert loud(tb_gradflow.explain(network, X, ONE_HOT)) == []


def test_sigmoids_of_scores_beside_a_cross_entropy_by_hand_are_not_named() -> None:
    """A program that computes both knows what it trains."""
    kernel = tf.Variable(tf.ones((5, 3)), name="kernel")

    @tf.function
    def step() -> Any:
        scores = tf.constant(X) @ kernel
        gates = tf.sigmoid(scores)
        return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(ONE_HOT, scores)) + 0.0 * tf.reduce_sum(gates)

    assert loud(tb_gradflow.explain(step, variables=[kernel])) == []
