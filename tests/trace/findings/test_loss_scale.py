"""A loss scale by which the optimizer divides, and with which nobody has multiplied the loss; and what is no such."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow

Scaling = Callable[[Any, Any], Any]


@pytest.fixture(autouse=True)
def half_precision() -> Iterator[None]:
    keras.utils.set_random_seed(3)
    keras.mixed_precision.set_global_policy("mixed_float16")
    yield
    keras.mixed_precision.set_global_policy("float32")


def forgotten(optimizer: Any, loss: Any) -> Any:
    return loss


def scaled(optimizer: Any, loss: Any) -> Any:
    return optimizer.scale_loss(loss)


def scaled_in_part(optimizer: Any, loss: Any) -> Any:
    return optimizer.scale_loss(loss) / 4.0


def by_its_variable(optimizer: Any, loss: Any) -> Any:
    return loss * (optimizer.dynamic_scale if optimizer.built else 32768.0)


def by_a_number(optimizer: Any, loss: Any) -> Any:
    return loss * 32768.0


class Trained(keras.Sequential):
    """A `train_step` as in most tutorials."""

    scaling: Scaling = staticmethod(forgotten)

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True))
            target = self.scaling(self.optimizer, loss)
        gradients = tape.gradient(target, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def model() -> Any:
    return Trained([keras.Input((4,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(1, dtype="float32")])


X = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
Y = X.sum(axis=1, keepdims=True)


def causes(log_dir: Path) -> list[str]:
    return [finding.cause for finding in tb_gradflow.open_log(log_dir).report().findings]


@pytest.mark.parametrize("optimizer", ["adam", keras.optimizers.SGD])
def test_an_unscaled_loss_is_told_with_the_line_that_asks(tmp_path: Path, optimizer: Any) -> None:
    trained = model()
    trained.compile(optimizer if isinstance(optimizer, str) else optimizer(0.1), "mse")
    trained.fit(X, Y, batch_size=8, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(str(tmp_path), update_freq=1)])
    [finding] = tb_gradflow.open_log(tmp_path).report().findings
    assert (finding.cause, finding.severity) == ("loss_not_scaled", "warning")
    assert finding.source is not None
    assert finding.source.code.startswith("gradients = tape.gradient(target")
    assert "optimizer.scale_loss(loss)" in finding.fix


@pytest.mark.parametrize("scaling", [scaled, scaled_in_part, by_its_variable, by_a_number])
def test_a_loss_that_is_scaled_in_whatever_way_is_fine(tmp_path: Path, scaling: Scaling) -> None:
    trained = model()
    trained.scaling = scaling
    trained.compile(keras.optimizers.SGD(1e-3), "mse")
    trained.fit(X, Y, batch_size=8, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(str(tmp_path), update_freq=1)])
    assert causes(tmp_path) == []


def test_keras_own_step_is_fine(tmp_path: Path) -> None:
    plain = keras.Sequential(model().layers)
    plain.compile("adam", "mse")
    plain.fit(X, Y, batch_size=8, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(str(tmp_path), update_freq=1)])
    assert causes(tmp_path) == []


@pytest.mark.parametrize("wrapped", [tf.function, lambda step: step], ids=["graph", "eager"])
@pytest.mark.parametrize("scaling", [forgotten, scaled])
def test_a_loop_of_ones_own(tmp_path: Path, wrapped: Callable[[Any], Any], scaling: Scaling) -> None:
    trained, optimizer = model(), keras.optimizers.SGD(1e-3, loss_scale_factor=1024.0)

    @tb_gradflow.watch(str(tmp_path), update_freq=1)
    @wrapped
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(trained(x) - y))
            target = scaling(optimizer, loss)
        gradients = tape.gradient(target, trained.trainable_variables)
        optimizer.apply_gradients(zip(gradients, trained.trainable_variables, strict=True))
        return loss

    for _ in range(3):
        step(X, Y)
    step.flush()
    assert causes(tmp_path) == (["loss_not_scaled"] if scaling is forgotten else [])


def test_an_optimizer_without_a_scale_is_fine(tmp_path: Path) -> None:
    """Whether gradients get lost in half precision is measured."""
    trained = model()
    trained.compile(keras.optimizers.SGD(1e-3), "mse", auto_scale_loss=False)
    trained.fit(X, Y, batch_size=8, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(str(tmp_path), update_freq=1)])
    assert causes(tmp_path) == []


def test_steps_that_a_large_scale_spoils_are_no_alarm_where_it_is_divided(tmp_path: Path) -> None:
    trained = model()
    trained.scaling = scaled_in_part
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1e-3), initial_scale=2.0**24)
    trained.compile(optimizer, "mse")
    recorder = tb_gradflow.GradFlowCallback(str(tmp_path), update_freq=1000)
    trained.fit(X, Y, batch_size=4, epochs=4, verbose=0, callbacks=[recorder])
    assert float(optimizer.dynamic_scale) < 2.0**24
    assert float(optimizer.iterations) > 0
    log = tb_gradflow.open_log(tmp_path)
    assert log.report().healthy
    assert log.steps == (0,)
