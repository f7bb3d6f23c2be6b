"""A step whose loss is far above what is usual is recorded, with what made it so; the training is what it is without
the recorder."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tb_gradflow.trace.observed.observed_steps import MOST_SPIKES
from tests.trace.spikes.contact import recorded, spikes_in
from tests.trace.spikes.injections import (
    AT,
    ROWS,
    Injection,
    Training,
    flipped_bit,
    one_row,
    rate_that_stays,
    regression_adam,
    regression_sgd,
    scaled_batch,
)

SPIKE_AT = 130


def test_rows_are_found_by_leaving_them_out(tmp_path: Path) -> None:
    [seen] = recorded(regression_adam, Injection(one_row, ()), tmp_path)

    assert (seen.step, seen.spike.of, seen.kind) == (AT, "loss", "rows")
    [trial] = [each for each in seen.spike.trials if each.changed == "rows"]
    assert trial.rows == (7,)
    assert trial.loss is not None
    assert trial.loss < seen.spike.limit
    assert seen.spike.loss > 1000 * seen.spike.usual_loss
    report = tb_gradflow.open_log(str(tmp_path)).report(AT)
    [finding] = [each for each in report.findings if each.cause == "loss_spike"]
    assert (finding.severity, finding.examples) == ("warning", (7,))
    assert "Row 7 of its batch made it so" in finding.message


def test_weights_are_told_from_the_batch(tmp_path: Path) -> None:
    by_rate = recorded(regression_adam, Injection(rate_that_stays, ()), tmp_path / "rate")
    by_bit = recorded(regression_sgd, Injection(flipped_bit, ()), tmp_path / "bit")

    assert [by_rate[0].kind, by_bit[0].kind] == ["rate", "element"]
    assert by_rate[0].step == AT + 1
    before, now = by_rate[0].spike.rates
    assert now == pytest.approx(1000 * before)
    furthest = by_bit[0].furthest
    assert furthest is not None
    assert by_bit[0].trace.variables[furthest.variable].name == "sequential/second/kernel"


def test_a_training_in_which_nothing_happens_has_none(tmp_path: Path) -> None:
    assert recorded(regression_sgd, None, tmp_path) == []


def trained(callbacks: list[Any], *, xla: bool, breaks: bool) -> list[Any]:
    """The weights after a training with a row that is far away, after which it goes on, or a batch that breaks it."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(3)
    random = np.random.default_rng(1)
    x = random.normal(size=(160 * ROWS, 4)).astype("float32")
    y = x.sum(axis=1, keepdims=True)
    y[SPIKE_AT * ROWS + 3] = 1e18 if breaks else 300.0
    y[(SPIKE_AT + 1) * ROWS] = np.nan if breaks else 0.0
    inputs = keras.Input((4,))
    hidden = keras.layers.Dropout(0.1)(keras.layers.Dense(8, "tanh")(inputs))
    model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    model.compile("adam", "mse", jit_compile=xla, steps_per_execution=1 if xla or breaks else 2)
    model.fit(x, y, batch_size=ROWS, shuffle=False, verbose=0, callbacks=callbacks)
    return [*model.get_weights(), *(each.numpy() for each in model.optimizer.variables)]


@pytest.mark.parametrize("xla", [False, True], ids=["two steps at once", "XLA"])
def test_not_a_bit_of_the_training_changes(xla: bool, tmp_path: Path) -> None:
    plain = trained([], xla=xla, breaks=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*tb_gradflow.*")
        with_recorder = trained([GradFlowCallback(tmp_path, update_freq=10**6)], xla=xla, breaks=False)

    for one, other in zip(plain, with_recorder, strict=True):
        np.testing.assert_array_equal(one, other)
    [seen] = spikes_in(tmp_path)
    assert (seen.step, seen.kind) == (SPIKE_AT, "rows")


def test_a_step_that_breaks_after_one_that_was_not_usual_is_recorded_too(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*tb_gradflow.*")
        trained([GradFlowCallback(tmp_path, update_freq=10**6)], xla=False, breaks=True)

    log = tb_gradflow.open_log(str(tmp_path))
    assert {SPIKE_AT, SPIKE_AT + 1} <= set(log.steps)
    assert any(each.cause == "nonfinite_input" for each in log.report(SPIKE_AT + 1).findings)


def test_a_loop_of_ones_own_is_watched_and_only_a_few_of_its_steps_are_recorded(tmp_path: Path) -> None:
    weight, rounds = tf.Variable([1.0, 2.0]), 5

    @tb_gradflow.watch(tmp_path, update_freq=10**6)
    @tf.function
    def step(x: Any) -> None:
        with tf.GradientTape() as tape:
            error = tf.reduce_mean(tf.square(tf.linalg.matvec(x, weight) - 1.0))
        weight.assign_sub(1e-6 * tape.gradient(error, weight))

    random = np.random.default_rng(0)
    for _ in range(rounds):
        for number in range(160):
            step(tf.constant(random.normal(size=(8, 2)) * (1000 if number == 140 else 1), tf.float32))
    step.flush()

    found = spikes_in(tmp_path)
    assert len(found) == MOST_SPIKES < rounds
    assert [each.step for each in found] == [140, 300, 460]


def test_a_large_model_keeps_no_earlier_weights_and_says_so(tmp_path: Path) -> None:
    def large() -> Training:
        training = regression_sgd()
        inputs = keras.Input((8,))
        hidden = keras.layers.Dense(1100, "tanh")(keras.layers.Dense(1000, "tanh")(inputs))
        training.model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
        training.rate = 1e-4
        return training

    [seen] = recorded(large, Injection(scaled_batch, ()), tmp_path)

    assert (seen.step, seen.kind, seen.spike.earlier) == (AT, "unknown", 0)
    [finding] = [each for each in tb_gradflow.open_log(str(tmp_path)).report().findings if each.cause == "loss_spike"]
    assert "Why is not known" in finding.message
    assert finding.severity == "info"
