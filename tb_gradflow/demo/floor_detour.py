"""Whole numbers by a detour around `tf.floor`, which does not help. Expect: nondiff_rounding.

A counter's gain should be learnt, and counts are whole numbers. `x - (x - floor(x))` seems to keep the slope of x,
but the slopes of the two x cancel, and only the floor remains, which has no slope. Based on a question on Stack
Overflow.
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


def whole(x: tf.Tensor) -> tf.Tensor:
    return x - (x - tf.floor(x))


def whole_straight_through(x: tf.Tensor) -> tf.Tensor:
    """The same number with the slope of x: the floor is added as a constant."""
    return x + tf.stop_gradient(tf.floor(x) - x)


class Counter(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Counts what a sensor sees, with a trainable gain."""

    def __init__(self, whole_number: Callable[[tf.Tensor], tf.Tensor], **options: Any) -> None:
        super().__init__(**options)
        self.whole_number = whole_number

    def build(self, input_shape: tuple[int | None, int]) -> None:
        self.gain = self.add_weight(name="gain", shape=(), initializer=keras.initializers.Constant(FIRST_GUESS))

    def call(self, signal: tf.Tensor) -> tf.Tensor:
        return self.whole_number(self.gain * signal)


def train(log_dir: str, fixed: bool = False) -> keras.Model:
    keras.utils.set_random_seed(1)
    counter = Counter(whole_straight_through if fixed else whole, name="counter")
    model = keras.Sequential([keras.Input((1,)), counter], name="floor_detour")
    model.compile(optimizer=keras.optimizers.Adam(0.15), loss="mse")
    signals = np.random.default_rng(0).uniform(0.0, 4.0, size=(960, 1)).astype(np.float32)
    counts = np.floor(TRUE_GAIN * signals)
    recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=1, try_fixes=True)
    model.fit(signals, counts, batch_size=32, callbacks=[recorder])
    return model


if __name__ == "__main__":
    train(sys.argv[1], fixed="fixed" in sys.argv[2:])
