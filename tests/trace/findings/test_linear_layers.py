"""Models of several layers that are one linear function, and those that are not."""

from __future__ import annotations

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
    assert report.healthy
    return [each.cause for each in report.findings]


def of(*listed: Any, y: Any = Y) -> tb_gradflow.Report:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((6,)), *listed])
    model.compile("sgd", "mse")
    return tb_gradflow.explain(model, X, y)


@pytest.mark.parametrize("activation", [None, "linear"])
def test_dense_layers_without_an_activation_are_named(activation: str | None) -> None:
    report = of(
        layers.Dense(8, activation=activation, name="one"), layers.Dense(5, name="two"), layers.Dense(1, name="last")
    )

    assert named(report) == ["linear_layers"]
    [finding] = report.findings
    assert set(finding.variables) == {each for each in report.variables if each != "sequential/last/bias"}
    assert "between the layers `one`, `two` and `last`" in finding.message


def test_an_activation_of_the_last_layer_changes_nothing() -> None:
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
def test_other_models_are_not_named(listed: Any) -> None:
    assert "linear_layers" not in named(of(*listed))


def test_a_linear_autoencoder_is_not_named() -> None:
    assert named(of(layers.Dense(2), layers.Dense(6), y=X)) == []


def test_the_edit_gives_all_layers_but_the_last_an_activation(tmp_path: Path) -> None:
    model = keras.Sequential(
        [
            keras.Input((6,)),
            layers.Dense(8, name="first_of_three"),
            layers.Dense(7, activation="linear", name="second_of_three"),
            layers.Dense(1, name="third_of_three"),
        ]
    )
    model.compile("sgd", "mse")

    model.fit(X, Y, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert finding.edit is not None
    assert 'layers.Dense(8, name="first_of_three", activation="relu")' in finding.edit.after
    assert 'layers.Dense(7, activation="relu", name="second_of_three")' in finding.edit.after
