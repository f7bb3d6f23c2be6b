"""Brightness in 256 steps, by a cast to integers and back. Expect: integer_dtype.

The brightness of a picture should be learnt for a display that has 256 levels. There is no slope between integers, so
the cast ends the gradient; the offset that is added after it learns as if nothing were wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow

TRUE_BRIGHTENING = 1.8
FIRST_GUESS = 1.0
TRUE_OFFSET = 0.2


def levels(light: tf.Tensor) -> tf.Tensor:
    return tf.cast(tf.cast(light * 255.0, tf.int32), tf.float32) / 255.0


def levels_straight_through(light: tf.Tensor) -> tf.Tensor:
    """The same levels with the slope of the light itself."""
    return light + tf.stop_gradient(levels(light) - light)


class Display(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Brightens a picture, quantises it, and adds the ambient light."""

    def __init__(self, quantise: Callable[[tf.Tensor], tf.Tensor], **options: Any) -> None:
        super().__init__(**options)
        self.quantise = quantise

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        self.brightening = self.add_weight(
            name="brightening", shape=(), initializer=keras.initializers.Constant(FIRST_GUESS)
        )
        self.offset = self.add_weight(name="offset", shape=(), initializer="zeros")

    def call(self, picture: tf.Tensor) -> tf.Tensor:
        return self.quantise(self.brightening * picture) + self.offset


def train(log_dir: str, fixed: bool = False) -> keras.Model:
    keras.utils.set_random_seed(1)
    display = Display(levels_straight_through if fixed else levels, name="display")
    model = keras.Sequential([keras.Input((8, 8)), display], name="quantised_by_cast")
    model.compile(optimizer=keras.optimizers.Adam(0.1), loss="mse")
    pictures = np.random.default_rng(0).uniform(0.0, 0.5, size=(400, 8, 8)).astype(np.float32)
    wanted = TRUE_BRIGHTENING * pictures + TRUE_OFFSET
    recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=1, try_fixes=True)
    model.fit(pictures, wanted, batch_size=16, callbacks=[recorder])
    return model


if __name__ == "__main__":
    train(sys.argv[1], fixed="fixed" in sys.argv[2:])
