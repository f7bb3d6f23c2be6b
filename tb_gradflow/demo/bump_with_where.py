"""A finite bump that `tf.where` selects from a formula infinite elsewhere. Expect: where_inactive_branch.

The bump is exp(-w² / (w² - x²)) within a width w, which should be learnt, and zero outside. `tf.where` computes the
formula for all numbers and hides the results outside. Just outside the width the formula is infinite, and since the
gradient of a hidden result is zero times infinity, the width becomes NaN after some steps. Based on an answer on Stack
Overflow.
"""

from __future__ import annotations

import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow

TRUE_WIDTH = 0.8
FIRST_GUESS = 0.5


class Bump(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """exp(-w² / (w² - x²)) within the width w, zero outside."""

    def build(self, input_shape: tuple[int | None, int]) -> None:
        self.width = self.add_weight(name="width", shape=(), initializer=keras.initializers.Constant(FIRST_GUESS))

    def call(self, x: tf.Tensor) -> tf.Tensor:
        inside = tf.abs(x) < self.width
        return tf.where(inside, self.formula(x), 0.0)

    def formula(self, x: tf.Tensor) -> tf.Tensor:
        squared = tf.square(self.width)
        return tf.exp(-squared / (squared - tf.square(x)))


class SafeBump(Bump):
    """The same, but the formula only gets inputs for which it is defined."""

    def call(self, x: tf.Tensor) -> tf.Tensor:
        inside = tf.abs(x) < self.width
        return tf.where(inside, self.formula(tf.where(inside, x, 0.0)), 0.0)


def make_data(count: int = 768) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Numbers between -1 and 1, and the height of the true bump there."""
    x = np.random.default_rng(0).uniform(-1.0, 1.0, size=(count, 1))
    inside = np.abs(x) < TRUE_WIDTH
    height = np.exp(-(TRUE_WIDTH**2) / (TRUE_WIDTH**2 - np.where(inside, x, 0.0) ** 2))
    return x.astype(np.float32), np.where(inside, height, 0.0).astype(np.float32)


def train(log_dir: str, fixed: bool = False) -> keras.Model:
    keras.utils.set_random_seed(1)
    bump = SafeBump(name="bump") if fixed else Bump(name="bump")
    model = keras.Sequential([keras.Input((1,)), bump], name="bump_with_where")
    model.compile(optimizer=keras.optimizers.Adam(0.05), loss="mse")
    x, heights = make_data()
    recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=1, try_fixes=True)
    model.fit(x, heights, batch_size=32, callbacks=[recorder])
    return model


if __name__ == "__main__":
    train(sys.argv[1], fixed="fixed" in sys.argv[2:])
