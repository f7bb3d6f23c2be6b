"""What the callback does to a model before its first step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import pytest
import tensorflow as tf

from tb_gradflow import GradFlowCallback
from tests.trace import models
from tests.trace.recording import data, train

OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "adam": keras.optimizers.Adam,
    "moving average": lambda: keras.optimizers.SGD(0.1, momentum=0.9, use_ema=True),
    "loss scale": lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam()),
    "accumulation": lambda: keras.optimizers.SGD(0.1, gradient_accumulation_steps=2),
}


class Counted(keras.layers.Layer):
    calls = 0

    def call(self, x: Any) -> Any:
        Counted.calls += 1
        return x


def test_the_step_is_traced_as_often_as_without_the_recorder(tmp_path: Path) -> None:
    """TensorFlow traces a step twice in which the optimizer makes its variables."""

    def build() -> Any:
        model = keras.Sequential([keras.Input((6,)), Counted(), keras.layers.Dense(2)])
        model.compile("adam", "mse")
        Counted.calls = 0
        return model

    x, y = data()
    train(build, x, y)
    without = Counted.calls
    train(build, x, y, GradFlowCallback(tmp_path, update_freq=1))

    assert (without, Counted.calls) == (2, 2)


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_the_optimizer_is_what_it_would_have_been(optimizer: Callable[[], Any], tmp_path: Path) -> None:
    def build() -> Any:
        keras.utils.clear_session(free_memory=False)
        model = models.functional()
        model.compile(optimizer(), "mse")
        return model

    x, y = data()
    plain, recorded = (
        [
            (variable.path, variable.numpy().tolist())
            for variable in train(build, x, y, *callbacks, batch_size=4).model.optimizer.variables
        ]
        for callbacks in ((), (GradFlowCallback(tmp_path, update_freq=2),))
    )

    assert plain == recorded


def test_an_optimizer_that_updates_some_weights_has_variables_for_these_alone(tmp_path: Path) -> None:
    class Half(models.Subclassed):
        def train_step(self, data: Any) -> Any:
            x, y = data
            with tf.GradientTape() as tape:
                error = tf.reduce_mean(tf.square(self(x, training=True) - y))
            weights = self.second.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(error, weights), weights, strict=True))
            return {"error": error}

    def build() -> Any:
        model = Half()
        model.compile("adam")
        return model

    x, y = data()
    plain = train(build, x, y).model.optimizer.variables
    recorded = train(build, x, y, GradFlowCallback(tmp_path)).model.optimizer.variables

    assert len(plain) == len(recorded)
