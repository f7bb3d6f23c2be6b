"""What the user's step and data raise in `fit` is raised as it is without the recorder, whichever of ours runs then."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tb_gradflow.trace.nonfinite.branch_monitor import CatchingBranch
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep
from tests.trace.recording import read

EXECUTIONS = 3
BATCH = 4
SEVERAL = "two steps an execution"


def train(kind: str, spoilt: int | None = None, *callbacks: Any) -> tuple[list[int], Any, str]:
    """Trains a model that raises in a step whose batch holds 1000, before it computes anything, so that it makes no
    update: the batches that came to their end, the weights, and the error."""
    kit: Any = tf_keras if kind == "Keras 2" else keras
    several = 2 if kind == SEVERAL else 1
    kit.utils.set_random_seed(7)

    class Checked(kit.Model):
        def train_step(self, data: Any) -> Any:
            x, y = data
            with tf.control_dependencies([tf.debugging.assert_less(x, 100.0, "out of range")]):
                x = tf.identity(x)
            return super().train_step((x, y))

    inputs = kit.Input((3,))
    model = Checked(inputs, kit.layers.Dense(1)(inputs))
    model.compile("sgd", "mse", steps_per_execution=several, run_eagerly=kind == "eager")
    x = np.random.default_rng(0).normal(size=(EXECUTIONS * several * BATCH, 3)).astype("float32")
    y = x[:, :1].copy()
    if spoilt is not None:
        x[spoilt * several * BATCH] = 1000.0
    ended: list[int] = []
    note = kit.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: ended.append(batch))
    error = ""
    try:
        model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0, callbacks=[*callbacks, note])
    except tf.errors.InvalidArgumentError as raised:
        error = str(raised)
    return ended, [weight.tolist() for weight in model.get_weights()], error


def recorder(directory: Path) -> GradFlowCallback:
    """The first execution is recorded, the others are guarded."""
    return GradFlowCallback(directory, update_freq=10**6)


@pytest.mark.parametrize("spoilt", [0, 1, 2], ids=["recorded", "first monitored", "guarded"])
@pytest.mark.parametrize("kind", ["", SEVERAL, "eager", "Keras 2"])
def test_an_error_of_the_step_is_raised_in_that_very_step(kind: str, spoilt: int, tmp_path: Path) -> None:
    plain = train(kind, spoilt)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*tb_gradflow.*")
        ours = train(kind, spoilt, recorder(tmp_path))

    assert "out of range" in plain[2]
    assert "out of range" in ours[2]
    assert ours[:2] == plain[:2]


@pytest.mark.parametrize("ours", [InstrumentedStep, CatchingBranch], ids=["recorded", "first monitored"])
@pytest.mark.parametrize("kind", ["", SEVERAL, "Keras 2"])
def test_a_fault_of_the_recorder_costs_no_batch(
    kind: str, ours: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's own step stands in for the one that failed, on the same batch."""
    plain = train(kind)
    fail_at_the_beginning(ours, monkeypatch)

    with pytest.warns(
        RuntimeWarning, match=r"(?s)continues. The batch of this step may have been used twice. .*injected"
    ):
        trained = train(kind, None, recorder(tmp_path))

    assert trained == plain


def fail_at_the_beginning(ours: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of ours fail when they run, before they do anything."""

    def failing(step: Any) -> Any:
        def run(*args: Any) -> Any:
            with tf.control_dependencies([tf.py_function(fail, [], [])]):
                given = tf.nest.map_structure(tf.identity, args)
            return step(*given)

        return run

    def fail() -> None:
        raise RuntimeError("injected")

    if ours is InstrumentedStep:
        call = InstrumentedStep.__call__
        monkeypatch.setattr(ours, "__call__", lambda self, *args: failing(lambda *given: call(self, *given))(*args))
    else:
        added_to = CatchingBranch.added_to
        monkeypatch.setattr(ours, "added_to", lambda self, step: failing(added_to(self, step)))


def test_a_watched_step_is_recorded_on_after_an_error_of_its_own(tmp_path: Path) -> None:
    weight = tf.Variable(1.0)

    @tb_gradflow.watch(tmp_path, update_freq=1)
    def step(x: Any) -> None:
        with tf.control_dependencies([tf.debugging.assert_less(x, 100.0, "out of range")]):
            x = tf.identity(x)
        with tf.GradientTape() as tape:
            error = tf.square(weight * x)
        weight.assign_sub(0.01 * tape.gradient(error, weight))

    step(tf.constant(1.0))
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of range"):
        step(tf.constant(1000.0))
    step(tf.constant(2.0))
    step.flush()

    assert len(read(tmp_path).steps) == 2
