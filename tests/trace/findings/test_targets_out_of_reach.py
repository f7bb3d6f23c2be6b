"""Targets that the last activation cannot give, or that a binary cross-entropy is not made for, and those that are
meant."""

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
WIDE = (3 * X.sum(1, keepdims=True) + 5).astype("float32")
IS_LARGE = (WIDE > 5).astype("float32")
STANDARD = (WIDE - WIDE.mean()) / WIDE.std()
NOISE = np.random.default_rng(1).normal(size=IS_LARGE.shape).astype("float32")


def model(activation: str | None, units: int = 1) -> Any:
    keras.utils.set_random_seed(3)
    hidden = layers.Dense(8, activation="relu", name="hidden")
    return keras.Sequential([keras.Input((5,)), hidden, layers.Dense(units, activation=activation, name="last")])


def loud(report: tb_gradflow.Report) -> list[str]:
    return [each.cause for each in report.findings if each.severity != "info"]


def of_fit(
    directory: Path, activation: str | None, loss: Any, y: Any, *, run_eagerly: bool = False, **more: Any
) -> tb_gradflow.Report:
    last = model(activation, y.shape[-1])
    last.compile("adam", loss, run_eagerly=run_eagerly)
    callback = tb_gradflow.GradFlowCallback(directory)
    last.fit(X, y, batch_size=16, epochs=1, verbose=0, shuffle=False, callbacks=[callback], **more)
    return tb_gradflow.open_log(directory).report()


@pytest.mark.parametrize(
    ("activation", "loss", "y"),
    [
        ("sigmoid", "mse", WIDE),
        ("tanh", "mse", WIDE),
        ("relu", "mae", WIDE - 5),
        ("sigmoid", "mse", X),
        ("tanh", "mse", STANDARD),
        ("softmax", "mse", 10 * X),
        ("softmax", "poisson", X),
        ("softmax", "categorical_crossentropy", np.zeros((48, 3), "float32")),
        (None, "mape", IS_LARGE),
        ("sigmoid", "binary_crossentropy", 2 * IS_LARGE - 1),
        ("sigmoid", "binary_crossentropy", 1 + IS_LARGE),
        (None, keras.losses.BinaryCrossentropy(from_logits=True), 2 * IS_LARGE - 1),
    ],
)
def test_targets_that_cannot_be_reached_are_named(tmp_path: Path, activation: Any, loss: Any, y: Any) -> None:
    report = of_fit(tmp_path, activation, loss, y)

    assert loud(report) == ["targets_out_of_reach"]
    assert set(report.findings[0].variables) == set(report.variables)
    assert report.to_dict()["verdict"]["kind"] == "labels"
    assert (f"{y[32:48].max():.4g}" if y.any() else "are zero") in report.findings[0].message


def test_what_the_best_predictions_leave_of_the_targets_is_measured(tmp_path: Path) -> None:
    (found,) = of_fit(tmp_path, "tanh", "mse", STANDARD).findings
    last = STANDARD[32:48]
    part = np.square(last - np.clip(last, -1, 1)).sum() / np.square(last - last.mean()).sum()

    assert f"leave {100 * part:.2g} % of their variance" in found.message


@pytest.mark.parametrize(
    ("activation", "loss", "y"),
    [
        (None, "mse", WIDE),
        ("relu", "mse", np.abs(WIDE)),
        ("relu", "mse", np.abs(WIDE) - 0.1),  # noise around the limit
        ("sigmoid", "mse", IS_LARGE),
        ("sigmoid", "mse", IS_LARGE + 0.1 * NOISE),
        ("sigmoid", "mse", 1 + 0.03 * NOISE),  # batches of one class: their variance is that of the noise
        ("tanh", "mse", 2 * IS_LARGE - 1),
        ("sigmoid", "binary_crossentropy", IS_LARGE),
        ("sigmoid", "binary_crossentropy", 0.9 * IS_LARGE + 0.05),
    ],
)
def test_targets_within_reach_are_not(tmp_path: Path, activation: Any, loss: Any, y: Any) -> None:
    assert loud(of_fit(tmp_path, activation, loss, y)) == []


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
def test_noise_of_a_single_row_is_within_reach(activation: str) -> None:
    network = model(activation)
    network.layers[-1].bias.assign([1.0])
    network.compile("sgd", "mse")

    assert loud(tb_gradflow.explain(network, X[:1], np.full((1, 1), -0.02))) == []


def test_rows_without_a_label_that_have_no_weight_are_no_targets(tmp_path: Path) -> None:
    y = np.where(X[:, :1] > 1, -1, IS_LARGE)

    report = of_fit(tmp_path, "sigmoid", "binary_crossentropy", y, sample_weight=(y[:, 0] >= 0).astype("float32"))

    assert loud(report) == []


def squared(y: Any, p: Any) -> Any:
    return tf.reduce_mean((y - p) ** 2)


def binary(y: Any, p: Any) -> Any:
    return -tf.reduce_mean(y * tf.math.log(p + 1e-6) + (1 - y) * tf.math.log(1 - p + 1e-6))


def masked(y: Any, p: Any) -> Any:
    has_label = tf.cast(y >= 0, tf.float32)
    return tf.reduce_sum(has_label * (y - p) ** 2) / tf.reduce_sum(has_label)


def reinforced(advantage: Any, p: Any) -> Any:
    """The log-probability of an action, with its advantage, which may well be negative."""
    return -tf.reduce_mean(advantage * tf.math.log(p + 1e-6))


@pytest.mark.parametrize("run_eagerly", [False, True])
@pytest.mark.parametrize(
    ("loss", "y", "causes"),
    [
        (squared, WIDE, ["targets_out_of_reach"]),
        (binary, 2 * IS_LARGE - 1, ["targets_out_of_reach"]),
        (binary, IS_LARGE, []),
        (masked, np.where(X[:, :1] > 1, -1, IS_LARGE), []),
        (reinforced, WIDE - 5, []),
    ],
)
def test_a_loss_of_ones_own(
    tmp_path: Path, loss: Callable[..., Any], y: Any, causes: list[str], *, run_eagerly: bool
) -> None:
    assert loud(of_fit(tmp_path, "sigmoid", loss, y, run_eagerly=run_eagerly)) == causes


CLASSES = np.random.default_rng(1).integers(1, 8, size=(48, 4)).astype("float32")
ONE_HOT = np.eye(4, dtype="float32")[np.arange(48) % 4]


@pytest.mark.parametrize("run_eagerly", [False, True])
@pytest.mark.parametrize(
    ("y", "causes"),
    [
        (CLASSES, ["targets_out_of_reach"]),
        (ONE_HOT, []),
        (0.9 * ONE_HOT + 0.025, []),
        (3 * ONE_HOT * WIDE, []),  # a policy gradient: each action, with its advantage
        (CLASSES * (ONE_HOT < 1), []),  # how often each word occurs
    ],
)
def test_a_cross_entropy_of_classes_is_given_probabilities(
    tmp_path: Path, y: Any, causes: list[str], *, run_eagerly: bool
) -> None:
    assert loud(of_fit(tmp_path, "softmax", "categorical_crossentropy", y, run_eagerly=run_eagerly)) == causes


FAR = 60.0
"""An offset with which a sigmoid is flat; with its negative, a ReLU is."""


@pytest.mark.parametrize(
    ("activation", "offset", "loss", "y", "cause"),
    [
        ("sigmoid", FAR, "mse", WIDE, "targets_out_of_reach"),
        ("sigmoid", FAR / 3, "mse", WIDE, "targets_out_of_reach"),  # almost flat
        ("tanh", FAR, "mae", WIDE, "targets_out_of_reach"),
        ("relu", -FAR, "mse", WIDE - 5, "targets_out_of_reach"),
        ("sigmoid", -FAR, "binary_crossentropy", 2 * IS_LARGE - 1, "targets_out_of_reach"),
        ("sigmoid", FAR / 3, "mape", IS_LARGE, "targets_out_of_reach"),
        ("sigmoid", FAR, "mse", IS_LARGE, "saturation_sigmoid"),
        ("relu", -FAR, "mse", np.abs(WIDE), "dead_relu"),
    ],
)
def test_targets_that_do_not_fit_are_named_also_where_the_last_activation_is_flat(
    activation: str, offset: float, loss: str, y: Any, cause: str
) -> None:
    network = model(activation)
    network.layers[-1].bias.assign([offset])
    network.compile("sgd", loss)

    report = tb_gradflow.explain(network, X, y)

    assert loud(report) == [cause]
    assert set(report.findings[0].variables) == set(report.variables)
    assert report.to_dict()["verdict"]["kind"] == ("labels" if cause == "targets_out_of_reach" else "gradient")
    is_zero = all(each.status == "zero" for each in report.variables.values())
    assert report.findings[0].severity == ("error" if is_zero else "warning")


def test_a_layer_that_is_dead_further_in_is_named_beside_targets_that_do_not_fit() -> None:
    network = model("sigmoid")
    network.layers[0].bias.assign([-FAR] * 8)
    network.compile("sgd", "mse")

    report = tb_gradflow.explain(network, X, WIDE)

    assert set(loud(report)) == {"dead_relu", "targets_out_of_reach"}


@pytest.mark.parametrize("y", [np.zeros_like(IS_LARGE), IS_LARGE])
def test_targets_that_are_all_the_same_are_told_where_nothing_else_is(tmp_path: Path, y: Any) -> None:
    last = model("sigmoid")
    last.compile(keras.optimizers.SGD(1e-3), "binary_crossentropy")
    last.fit(X, y, batch_size=4, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path, update_freq=1)])
    report = tb_gradflow.open_log(tmp_path).report()

    assert report.healthy
    assert ("All targets of the recorded steps are 0" in report.summary) == (not y.any())


def test_weights_of_log_probabilities_that_are_all_the_same_are_no_targets(tmp_path: Path) -> None:
    last = model("sigmoid")
    last.compile(keras.optimizers.SGD(1e-3), reinforced)
    callback = tb_gradflow.GradFlowCallback(tmp_path, update_freq=1)
    last.fit(X, np.ones_like(IS_LARGE), batch_size=4, verbose=0, callbacks=[callback])

    assert "All targets" not in tb_gradflow.open_log(tmp_path).report().summary


def density_of_squashed(_: tf.Tensor, found: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(tf.math.log(2.0 * (1 - tf.tanh(found) ** 2) + 1e-6))


def test_a_number_that_a_logarithm_subtracts_a_prediction_from_is_no_target(tmp_path: Path) -> None:
    """As in the density of an action that goes through a tanh."""
    last = model("linear")
    last.compile(keras.optimizers.SGD(1e-3), density_of_squashed, run_eagerly=True)
    callback = tb_gradflow.GradFlowCallback(tmp_path, update_freq=1)
    last.fit(X, IS_LARGE, batch_size=4, verbose=0, callbacks=[callback])

    assert "All targets" not in tb_gradflow.open_log(tmp_path).report().summary


def test_noise_below_zero_in_a_batch_without_others_is_within_reach_of_a_relu(tmp_path: Path) -> None:
    """The batches before it have shown how large targets are."""
    y = np.where(np.arange(48)[:, None] < 32, np.abs(WIDE), 0.03 * NOISE)

    assert loud(of_fit(tmp_path, "relu", "mse", y)) == []
