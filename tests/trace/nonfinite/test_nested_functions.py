"""A training whose forward pass is a `tf.function` of its own: the graph optimizer puts it in the place of the call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow

_ROWS = np.random.default_rng(0).normal(size=(61, 6)).astype("float32")


class Nested(keras.Model):
    """SGD multiplies the gradient of the normalisation's scale, itself a product, by a number."""

    def __init__(self) -> None:
        super().__init__()
        layers = keras.layers
        self.net = keras.Sequential(
            [keras.Input((6,)), layers.Dense(16, "gelu"), layers.BatchNormalization(), layers.Dense(6)]
        )
        self.built = True

    @tf.function
    def error(self, x: Any) -> Any:
        told = self.net(x, training=True)
        return tf.reduce_mean(tf.square(told - x)) + 0.1 * tf.reduce_mean(tf.abs(told))

    def train_step(self, x: Any) -> dict[str, Any]:
        with tf.GradientTape() as tape:
            loss = self.error(x)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": loss}


def trained(*callbacks: Any) -> list[Any]:
    keras.utils.set_random_seed(3)
    model = Nested()
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9), jit_compile=False)
    model.fit(_ROWS, batch_size=8, epochs=2, shuffle=False, verbose=0, callbacks=list(callbacks))
    return list(model.get_weights())


@pytest.mark.parametrize("update_freq", [1, 1000])
def test_weights_are_the_same_where_steps_are_recorded_and_where_they_are_monitored(
    update_freq: int, tmp_path: Path
) -> None:
    recorded = trained(tb_gradflow.GradFlowCallback(str(tmp_path), update_freq=update_freq))

    for plain, other in zip(trained(), recorded, strict=True):
        np.testing.assert_array_equal(plain, other)


def test_the_gradient_is_that_of_the_tape(tmp_path: Path) -> None:
    keras.utils.set_random_seed(3)
    model = Nested()
    with tf.GradientTape() as tape:
        loss = model.error(tf.constant(_ROWS[:8]))
    wanted = tape.gradient(loss, model.trainable_variables)

    trained(tb_gradflow.GradFlowCallback(str(tmp_path), update_freq=1))

    states = tb_gradflow.open_log(str(tmp_path)).report(0).variables.values()
    measured = [state.gradient.norm for state in states if state.gradient is not None]
    np.testing.assert_allclose(measured, [tf.norm(each) for each in wanted], rtol=1e-4)
