"""A loss scale that is too large is called that, whether an optimizer multiplies by it or the user does; and a scale
that does its work is no finding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.serve.reports.report import Report

X = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
Y = 100 * np.random.default_rng(1).normal(size=(8, 1)).astype(np.float32)


def model_of(optimizer: Any, policy: str = "float32", *, eagerly: bool = False) -> Any:
    keras.utils.set_random_seed(0)
    dense = keras.layers.Dense(4, activation="relu", dtype=policy)
    model = keras.Sequential([keras.Input((3,)), dense, keras.layers.Dense(1, dtype="float32")])
    model.compile(optimizer, "mse", run_eagerly=eagerly)
    return model


def scaled_by(scale: float) -> Any:
    return keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(), initial_scale=scale)


@pytest.mark.parametrize("eagerly", [False, True], ids=["compiled", "eager"])
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_a_scale_that_makes_gradients_infinite_is_named(policy: str, eagerly: bool) -> None:
    report = tb_gradflow.explain(model_of(scaled_by(1e38), policy, eagerly=eagerly), X, Y)

    (finding,) = report.findings
    assert (finding.cause, finding.severity) == ("not_finite", "info")
    assert "with the loss scale of this step, 1e+38, a gradient exceeds the largest float32 value" in finding.message
    assert "the optimizer skipped the step" in finding.message


def test_it_is_named_in_a_log_as_well(tmp_path: Path) -> None:
    model_of(scaled_by(1e38)).fit(X, Y, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path, 1)])

    (finding,) = tb_gradflow.open_log(tmp_path).report().findings

    assert "with the loss scale of this step" in finding.message


def test_an_optimizer_that_does_not_skip_the_step_is_not_said_to() -> None:
    model = model_of(keras.optimizers.Adam(loss_scale_factor=1e38))

    report = tb_gradflow.explain(model, X, Y)

    assert not report.healthy
    assert "Without the scale, the loss is finite" in report.findings[0].message


@pytest.mark.parametrize("scale", [2.0**15, 1e34, 1e35])
def test_a_product_of_loss_and_scale_that_overflows_alone_does_no_harm(scale: float) -> None:
    """Its gradient is the scale, which is finite, and so is what comes of that."""
    model = model_of(scaled_by(scale))

    report = tb_gradflow.explain(model, X, Y)

    assert not report.findings
    assert all(each.status == "connected" for each in report.variables.values())


def trained(log: Path, factor: float, divisor: float) -> Report:
    weight = tf.Variable([[0.5], [0.1], [-0.2]], name="weight")
    optimizer = keras.optimizers.SGD(0.01)

    @tb_gradflow.watch(log, update_freq=1)
    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((X @ weight - Y / 100) ** 2)
            scaled = loss * factor
        gradient = tape.gradient(scaled, weight)
        optimizer.apply_gradients([(gradient / divisor, weight)])

    step()
    step.flush()
    return tb_gradflow.open_log(log).report()


def test_a_loss_scale_by_hand_is_no_warning(tmp_path: Path) -> None:
    report = trained(tmp_path, 2.0**16, 2.0**16)

    assert report.healthy
    assert "multiplies the loss by 6.55e+04" in report.findings[0].message
    assert str(report).count("no gradient was seen") == 0


@pytest.mark.parametrize("factor", [1e6, 1e30])
def test_another_large_factor_is_named(tmp_path: Path, factor: float) -> None:
    report = trained(tmp_path, factor, 1.0)

    assert not report.healthy
    assert f"multiplies the loss by {factor:.3g}" in report.findings[0].message


def grown(layers: Callable[[], Any]) -> Report:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((40, 3)), layers(), keras.layers.Dense(1)])
    model.compile(scaled_by(2.0**15), "mse")
    return tb_gradflow.explain(model, np.random.default_rng(0).normal(size=(8, 40, 3)).astype(np.float32), Y)


def test_a_recurrence_that_explodes_by_itself_is_not_laid_to_the_scale() -> None:
    report = grown(
        lambda: keras.layers.SimpleRNN(4, activation="linear", recurrent_initializer=keras.initializers.Constant(2.0))
    )

    assert not report.healthy
    assert report.findings[0].cause == "exploding_recurrence"
