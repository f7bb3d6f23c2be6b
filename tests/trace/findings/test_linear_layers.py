"""Models of several layers that are one linear function, and those that are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

import tb_gradflow

X = np.random.default_rng(0).normal(size=(32, 6)).astype("float32")
Y = (X[:, :1] * X[:, 1:2]).astype("float32")


def named(report: tb_gradflow.Report) -> list[str]:
    """Information: the gradient is as it should be, and the function may be meant."""
    return [each.cause for each in report.findings if each.cause == "linear_layers"]


@pytest.fixture
def of(tmp_path: Path) -> Callable[..., tb_gradflow.Report]:
    """Trains these layers; with a small rate, the loss stays about as it is."""

    def trained(*listed: Any, y: Any = Y, rate: float = 1e-4) -> tb_gradflow.Report:
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((6,)), *listed])
        model.compile(keras.optimizers.SGD(rate), "mse")
        recorder = tb_gradflow.GradFlowCallback(tmp_path, update_freq=1)
        model.fit(X, y, batch_size=32, epochs=25, verbose=0, callbacks=[recorder])
        return tb_gradflow.open_log(tmp_path).report()

    return trained


@pytest.mark.parametrize("activation", [None, "linear"])
def test_dense_layers_without_an_activation_are_named(activation: str | None, of: Any) -> None:
    report = of(
        layers.Dense(8, activation=activation, name="one"), layers.Dense(5, name="two"), layers.Dense(1, name="last")
    )

    assert named(report) == ["linear_layers"]
    [finding] = [each for each in report.findings if each.cause == "linear_layers"]
    assert finding.severity == "info"
    assert set(finding.variables) == {each for each in report.variables if each != "sequential/last/bias"}
    assert "between the layers `one`, `two` and `last`" in finding.message


def test_an_activation_of_the_last_layer_changes_nothing(of: Any) -> None:
    """It cannot make up for those that are missing."""
    y = (Y > 0).astype("float32")

    assert named(of(layers.Dense(8), layers.Dense(1, activation="sigmoid"), y=y)) == ["linear_layers"]


@pytest.mark.parametrize(
    "listed",
    [
        (layers.Dense(1),),
        (layers.Dense(8, activation="relu"), layers.Dense(4), layers.Dense(1)),
        (layers.Dense(8), layers.LeakyReLU(), layers.Dense(1)),
        (layers.Dense(8), layers.BatchNormalization(), layers.Dense(1)),
        (layers.Dense(8), layers.Dense(8), layers.ReLU(), layers.Dense(1)),
    ],
)
def test_other_models_are_not_named(listed: Any, of: Any) -> None:
    assert "linear_layers" not in named(of(*listed))


def test_a_linear_autoencoder_is_not_named(of: Any) -> None:
    assert named(of(layers.Dense(2), layers.Dense(6), y=X)) == []


def test_neither_is_one_whose_loss_falls(of: Any) -> None:
    """Nor one in a single step: the function may be meant."""
    linear = X @ np.arange(6, dtype=np.float32)[:, None]

    assert named(of(layers.Dense(8), layers.Dense(1), y=linear, rate=0.01)) == []


def test_nor_one_in_a_single_step() -> None:
    model = keras.Sequential([keras.Input((6,)), layers.Dense(8), layers.Dense(1)])
    model.compile("sgd", "mse")

    assert tb_gradflow.explain(model, X, Y).findings == ()


def test_the_edit_gives_all_layers_but_the_last_an_activation(tmp_path: Path) -> None:
    model = keras.Sequential(
        [
            keras.Input((6,)),
            layers.Dense(8, name="first_of_three"),
            layers.Dense(7, activation="linear", name="second_of_three"),
            layers.Dense(1, name="third_of_three"),
        ]
    )
    model.compile(keras.optimizers.SGD(1e-4), "mse")

    model.fit(X, Y, epochs=25, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path, update_freq=1)])

    findings = tb_gradflow.open_log(tmp_path).report().findings
    [finding] = [each for each in findings if each.cause == "linear_layers"]
    assert finding.edit is not None
    assert 'layers.Dense(8, name="first_of_three", activation="relu")' in finding.edit.after
    assert 'layers.Dense(7, activation="relu", name="second_of_three")' in finding.edit.after
