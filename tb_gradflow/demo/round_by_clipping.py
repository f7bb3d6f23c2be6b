"""Probabilities rounded by `tf.maximum` and `tf.minimum`. Expect: saturation_clip.

Both functions have derivatives, so a sufficiently steep ramp between them should round and still learn. But the ramp is
only a ten-thousandth wide: every probability is outside it, at a limit, where the slope is zero. Based on an answer
on Stack Overflow.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow

DIRECTION = np.array([[1.0], [-2.0], [0.5]])


def rounded(probability: tf.Tensor) -> tf.Tensor:
    above = tf.maximum(probability - 0.499, 0.0)
    return tf.minimum(above * 10000.0, 1.0)


def rounded_straight_through(probability: tf.Tensor) -> tf.Tensor:
    """Zero or one, with the slope of the probability itself."""
    return probability + tf.stop_gradient(tf.round(probability) - probability)


class Decision(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Rounds probabilities to yes and no."""

    def __init__(self, rounding: Callable[[tf.Tensor], tf.Tensor], **options: Any) -> None:
        super().__init__(**options)
        self.rounding = rounding

    def call(self, probability: tf.Tensor) -> tf.Tensor:
        return self.rounding(probability)


def train(log_dir: str, fixed: bool = False) -> keras.Model:
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(1, activation="sigmoid", name="probability"),
            Decision(rounded_straight_through if fixed else rounded, name="decision"),
        ],
        name="round_by_clipping",
    )
    model.compile(optimizer=keras.optimizers.Adam(0.1), loss="mse")
    x = np.random.default_rng(0).normal(size=(800, 3)).astype(np.float32)
    answers = (x @ DIRECTION > 0).astype(np.float32)
    recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=1, try_fixes=True)
    model.fit(x, answers, batch_size=32, callbacks=[recorder])
    return model


if __name__ == "__main__":
    train(sys.argv[1], fixed="fixed" in sys.argv[2:])
