"""Trainings whose steps run eagerly are recorded from what ran."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tests.trace import models
from tests.trace.recording import data, expected_gradients, read, record, train


def eager(build: Callable[[], Any]) -> Callable[[], Any]:
    def built() -> Any:
        model = build()
        model.run_eagerly = True
        return model

    return built


@pytest.mark.parametrize("build", [models.sequential, models.own_step, models.gan])
def test_losses_and_weights_are_those_without_the_recorder(build: Callable[[], Any], tmp_path: Path) -> None:
    """With a last batch that is smaller, which is another structure."""
    x, y = data(rows=40)
    plain = train(eager(build), x, y, epochs=2)

    recorded = train(eager(build), x, y, GradFlowCallback(tmp_path, update_freq=2), epochs=2)

    assert recorded.losses == plain.losses
    for one, other in zip(plain.weights, recorded.weights, strict=True):
        np.testing.assert_array_equal(one, other)
    log = read(tmp_path)
    assert log.steps == (0, 2, 4)
    assert len(log.traces) <= 3


def test_the_numbers_are_the_tapes(tmp_path: Path) -> None:
    x, y = data()

    recorded = record(tmp_path, eager(models.functional), x, y)

    keras.utils.set_random_seed(7)
    for name, gradient in expected_gradients(models.functional(), x, y, keras.losses.MeanSquaredError()).items():
        assert recorded.gradient(name) == pytest.approx(np.linalg.norm(gradient.numpy()), rel=1e-4)
    assert {each.status for each in tb_gradflow.open_log(tmp_path).report().variables.values()} == {"connected"}


def test_a_value_that_python_took_is_found(tmp_path: Path) -> None:
    class Escapes(models.Subclassed):
        def call(self, x: Any, training: bool = False) -> Any:
            return self.second(tf.constant(self.first(x).numpy()))

    def build() -> Any:
        model = Escapes()
        model.compile("sgd", "mse", run_eagerly=True)
        return model

    train(build, *data(), GradFlowCallback(tmp_path, update_freq=1))

    report = tb_gradflow.open_log(tmp_path).report()
    assert report.variables["subclassed/first/kernel"].status == "disconnected"
    assert report.findings[0].cause == "python_escape"


def test_a_watched_step_is_recorded_where_functions_run_eagerly(tmp_path: Path) -> None:
    weight = tf.Variable([1.0, 2.0], name="weight")

    @tb_gradflow.watch(tmp_path, update_freq=1)
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(weight) * x) * float(x.numpy() > 0)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
        return loss

    tf.config.run_functions_eagerly(True)
    try:
        losses = [float(step(tf.constant(1.0))) for _ in range(3)]
    finally:
        tf.config.run_functions_eagerly(False)

    step.flush()
    assert losses == pytest.approx([5.0, 3.2, 2.048])
    recorded = read(tmp_path)
    assert recorded.steps == (0, 1, 2)
    assert [recorded.gradient("weight", step=each) for each in range(3)] == pytest.approx(
        [2 * 0.8**each * 5**0.5 for each in range(3)], rel=1e-5
    )


def test_batches_of_many_sizes_do_not_fill_the_log_with_structures(tmp_path: Path) -> None:
    model = eager(models.functional)()
    x, y = data(rows=64)

    def batches() -> Any:
        for size in range(1, 19):
            yield x[:size], y[:size]

    model.fit(batches(), steps_per_epoch=18, verbose=0, callbacks=[GradFlowCallback(tmp_path, update_freq=1)])

    log = read(tmp_path)
    assert log.steps == tuple(range(18))
    assert len(log.traces) == 16
