"""A gradient that a single op takes is not one that depth has made small."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers, ops

import tb_gradflow
from tb_gradflow.serve.reports.report import Report


def fitted(log_dir: Path, between: Callable[[Any], Any], units: int) -> Report:
    """Two layers, a function between them, and one behind."""
    keras.utils.set_random_seed(2)
    inputs = keras.Input((6,))
    scores = layers.Dense(units, name="scores")(layers.Dense(8, activation="tanh", name="hidden")(inputs))
    model = keras.Model(inputs, layers.Dense(1, name="out")(between(scores)))
    model.compile(keras.optimizers.SGD(0.01), "mse")
    x = np.random.default_rng(1).normal(size=(32, 6)).astype("float32")
    model.fit(x, x[:, :1], epochs=3, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(str(log_dir), update_freq=1)])
    return tb_gradflow.open_log(log_dir).report()


@pytest.mark.parametrize("temperature", [5e-4, 1e-5])
def test_a_softmax_of_a_low_temperature_is_saturated_in_a_fit_too(temperature: float, tmp_path: Path) -> None:
    """Its gradient is close to zero, or zero; that of its output is not recorded."""
    report = fitted(tmp_path, layers.Lambda(lambda scores: ops.softmax(scores / temperature)), 5)

    [finding] = [each for each in report.findings if each.severity != "info"]
    assert finding.cause == "saturation_softmax"
    assert f"divides by {temperature:.3g}" in finding.message
    assert "larger number" in finding.fix


def by_hand(x: Any) -> Any:
    return ops.sqrt(ops.sum(x * x, 1, True))


@pytest.mark.parametrize("norm", [lambda x: ops.norm(x, axis=-1, keepdims=True), by_hand])
def test_a_single_element_divided_by_its_norm_is_always_one(norm: Callable[[Any], Any], tmp_path: Path) -> None:
    report = fitted(tmp_path, layers.Lambda(lambda x: x / norm(x)), 1)

    [finding] = [each for each in report.findings if each.severity != "info"]
    assert finding.cause == "degenerate_normalisation"


@pytest.mark.parametrize(
    ("between", "units"),
    [
        (lambda scores: ops.softmax(scores / 0.5), 5),
        (lambda scores: scores / by_hand(scores), 3),
    ],
)
def test_a_usual_softmax_and_a_usual_norm_are_healthy(
    between: Callable[[Any], Any], units: int, tmp_path: Path
) -> None:
    assert fitted(tmp_path, layers.Lambda(between), units).healthy
