"""A floor with a custom gradient, which is zero. Expect: custom_gradient_wrong.

`tf.floor` has no gradient, so somebody wrote one with `tf.custom_gradient`: zero, which is the slope of a floor almost
everywhere, and nothing learns from it. The intended gradient is the slope of the line that the steps follow. Based on
a question on Stack Overflow.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow

TRUE_GAIN = 6.0
FIRST_GUESS = 3.0


@tf.custom_gradient  # type: ignore[untyped-decorator]  # TensorFlow has no types
def stairs(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return tf.zeros_like(upstream)

    return tf.floor(x), gradient


@tf.custom_gradient  # type: ignore[untyped-decorator]
def stairs_with_slope(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return upstream

    return tf.floor(x), gradient


class Counter(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Counts what a sensor sees, with a trainable gain."""

    def __init__(self, floor: Callable[[tf.Tensor], tf.Tensor], **options: Any) -> None:
        super().__init__(**options)
        self.floor = floor

    def build(self, input_shape: tuple[int | None, int]) -> None:
        self.gain = self.add_weight(name="gain", shape=(), initializer=keras.initializers.Constant(FIRST_GUESS))

    def call(self, signal: tf.Tensor) -> tf.Tensor:
        return self.floor(self.gain * signal)


def train(log_dir: str, fixed: bool = False) -> keras.Model:
    keras.utils.set_random_seed(1)
    counter = Counter(stairs_with_slope if fixed else stairs, name="counter")
    model = keras.Sequential([keras.Input((1,)), counter], name="custom_floor")
    model.compile(optimizer=keras.optimizers.Adam(0.15), loss="mse")
    signals = np.random.default_rng(0).uniform(0.0, 4.0, size=(960, 1)).astype(np.float32)
    counts = np.floor(TRUE_GAIN * signals)
    recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=1, try_fixes=True)
    model.fit(signals, counts, batch_size=32, callbacks=[recorder])
    return model


if __name__ == "__main__":
    train(sys.argv[1], fixed="fixed" in sys.argv[2:])
