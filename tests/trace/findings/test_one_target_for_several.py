"""Outputs for a row that are compared with one number, and losses of Keras of which the shapes say too little."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

import tb_gradflow

X = np.random.default_rng(0).normal(size=(48, 5)).astype("float32")
CLASSES = (np.arange(48) % 3).astype("float32")[:, None]
NUMBERS = X[:, :1]


def report(directory: Path, activation: str | None, units: int, loss: Any, y: Any) -> tb_gradflow.Report:
    keras.utils.set_random_seed(3)
    hidden = layers.Dense(8, activation="tanh", name="hidden")
    model = keras.Sequential([keras.Input((5,)), hidden, layers.Dense(units, activation=activation, name="last")])
    model.compile("adam", loss)
    model.fit(X, y, batch_size=16, epochs=2, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(directory)])
    return tb_gradflow.open_log(directory).report()


def loud(report: tb_gradflow.Report) -> list[str]:
    return [each.cause for each in report.findings if each.severity != "info"]


@pytest.mark.parametrize(
    ("activation", "loss", "y"),
    [
        ("softmax", "mse", np.abs(np.tanh(NUMBERS))),
        ("softmax", "mae", CLASSES / 2),
        ("sigmoid", "log_cosh", CLASSES),
        (None, "mse", CLASSES),
        (None, keras.losses.Huber(), CLASSES),
    ],
)
def test_outputs_that_share_a_target_are_named(tmp_path: Path, activation: Any, loss: Any, y: Any) -> None:
    said = report(tmp_path, activation, 3, loss, y)

    assert loud(said) == ["labels_broadcast"]
    assert "trains all 3 outputs of a row towards one number" in said.findings[0].message
    assert said.to_dict()["verdict"]["kind"] == "labels"


@pytest.mark.parametrize(
    ("units", "loss", "y"),
    [
        (3, "mse", np.repeat(NUMBERS, 3, 1)),
        (3, "sparse_categorical_crossentropy", CLASSES),
        (3, "mse", NUMBERS),
        (1, "mse", CLASSES),
    ],
)
def test_targets_that_fit_their_outputs_are_not_named(tmp_path: Path, units: int, loss: Any, y: Any) -> None:
    """Members of an ensemble share numbers to predict."""
    activation = "softmax" if loss == "sparse_categorical_crossentropy" else None

    assert loud(report(tmp_path, activation, units, loss, y)) == []


def test_a_cross_entropy_over_one_unit_is_named_where_the_shape_is_known_at_run_time_alone(tmp_path: Path) -> None:
    loss = keras.losses.CategoricalCrossentropy(from_logits=True)

    assert loud(report(tmp_path, None, 1, loss, CLASSES)) == ["softmax_single_class"]


def test_a_binary_cross_entropy_of_any_number_is_named_although_none_is_clipped() -> None:
    keras.utils.set_random_seed(3)
    last = layers.Dense(1, kernel_initializer="zeros", bias_initializer=keras.initializers.Constant(0.5))
    model = keras.Sequential([keras.Input((5,)), layers.Dense(8, activation="tanh"), last])
    model.compile("sgd", "binary_crossentropy")

    said = tb_gradflow.explain(model, X, (NUMBERS > 0).astype("float32"))

    assert "saturation_clip" in loud(said)
    assert any("In this step all of it is." in each.message for each in said.findings)


def test_offsets_of_an_absolute_error_are_zero_where_as_many_rows_lie_above_as_below() -> None:
    """The gradient of each row has the same size."""
    model = keras.Sequential([keras.Input((2,)), layers.Dense(2, kernel_initializer="zeros")])
    model.compile("sgd", "mae")

    said = tb_gradflow.explain(model, np.eye(2, dtype="float32"), np.array([[1, -1], [-1, 1]], "float32"))

    assert loud(said) == []
    assert said.variables["sequential/dense/bias"].status == "zero"
