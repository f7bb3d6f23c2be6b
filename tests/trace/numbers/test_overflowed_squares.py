"""One gradient whose square is above the largest float32 ends a training with many optimizers, in silence or in NaN."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.api import Log
from tests.trace.recording import read

SLOPES = (1.0, 1.0, 1e22, 0.5, 1.0)
"""Of the loss, in each step."""


def trained(log_dir: Path, optimizer: Any, slopes: tuple[float, ...] = SLOPES) -> tuple[Log, list[bool]]:
    """The log, and whether the weights have changed in each step."""
    weights = tf.Variable([1.0, 2.0], name="weights")

    @tb_gradflow.watch(log_dir, update_freq=1)
    @tf.function
    def step(slope: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weights * slope)
        optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
        return loss

    moved = []
    for slope in slopes:
        before = weights.numpy()
        step(tf.constant(slope))
        moved.append(bool((weights.numpy() != before).any()))
    step.flush()
    return tb_gradflow.open_log(log_dir), moved


@pytest.mark.parametrize("name", ["RMSprop", "Adagrad", "Adadelta"])
def test_an_optimizer_that_divides_by_infinity_stands_still(tmp_path: Path, name: str) -> None:
    log, moved = trained(tmp_path, getattr(keras.optimizers, name)(1.0))

    assert moved == [True, True, False, False, False]
    for step in (3, 4):
        [finding] = log.report(step=step).findings
        assert (finding.cause, finding.severity) == ("gradient_not_applied", "warning")
        assert "in step 2 an element of the gradient was 1e+22" in finding.message
        assert f"keras.optimizers.{name}(clipvalue=1.0)" in finding.fix
    _, moved = trained(tmp_path / "clipped", getattr(keras.optimizers, name)(1.0, clipvalue=1.0))
    assert all(moved)


def test_adam_makes_nan_in_the_step_after(tmp_path: Path) -> None:
    log, _ = trained(tmp_path, keras.optimizers.Adam())

    [finding] = log.report(step=3).findings
    assert finding.cause == "nonfinite_update"
    assert "in step 2 an element was 1e+22" in finding.message
    assert "In step 3, where it started" in log.report(step=4).findings[0].message


@pytest.mark.parametrize("optimizer", [keras.optimizers.Adamax(), keras.optimizers.SGD(1e-3)])
def test_others_are_not_blamed(tmp_path: Path, optimizer: Any) -> None:
    log, _ = trained(tmp_path, optimizer)

    assert all("largest float32" not in each.message for step in log.steps for each in log.report(step=step).findings)


def test_a_large_gradient_whose_square_is_finite_holds_back_the_updates_after_it(tmp_path: Path) -> None:
    log, moved = trained(tmp_path, keras.optimizers.RMSprop(), (1.0, 1e18, 1.0))

    [finding] = log.report().findings
    assert moved == [True, True, False]
    assert (finding.cause, finding.severity) == ("gradient_not_applied", "warning"), "nothing moves for 580 steps"
    assert "in step 1 an element of the gradient was 1e+18" in finding.message
    assert "rounded away" in finding.message


def test_weights_whose_squares_overflow_warn_nobody(tmp_path: Path) -> None:
    weights = tf.Variable([1e30, -3e38])

    @tb_gradflow.watch(tmp_path, update_freq=1)
    @tf.function
    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weights)
        weights.assign_sub(tape.gradient(loss, weights))

    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error", RuntimeWarning)
        step()
        step()
    step.flush()

    assert read(tmp_path).steps == (0, 1)
