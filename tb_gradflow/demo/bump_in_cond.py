"""A bump whose width only decides which branch is taken. Expect: predicate_only.

The bump is exp(-1 / (1 - x²)) for numbers closer to zero than a width, which should be learnt, and zero elsewhere. The
width is used only in the condition of `tf.cond`: neither branch is computed from it, so no gradient can reach it. Based
on a question on Stack Overflow.
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
    """exp(-1 / (1 - x²)) within the width, zero outside."""

    def build(self, input_shape: tuple[int | None, int]) -> None:
        self.width = self.add_weight(name="width", shape=(), initializer=keras.initializers.Constant(FIRST_GUESS))

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return tf.map_fn(self.bump_of_one, x)

    def bump_of_one(self, x: tf.Tensor) -> tf.Tensor:
        inside = tf.abs(x[0]) < self.width
        return tf.cond(inside, lambda: tf.exp(-1.0 / (1.0 - tf.square(x))), lambda: tf.zeros_like(x))


class BumpOfItsWidth(Bump):
    """The same with the width in the formula: exp(-w² / (w² - x²)) within the width, zero outside."""

    def call(self, x: tf.Tensor) -> tf.Tensor:
        inside = tf.abs(x) < self.width
        safe = tf.where(inside, x, 0.0)
        squared = tf.square(self.width)
        return tf.where(inside, tf.exp(-squared / (squared - tf.square(safe))), 0.0)


def make_data(count: int = 384) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Numbers between -0.9 and 0.9, and twice the height of the true bump there."""
    x = np.random.default_rng(0).uniform(-0.9, 0.9, size=(count, 1))
    inside = np.abs(x) < TRUE_WIDTH
    height = np.exp(-(TRUE_WIDTH**2) / (TRUE_WIDTH**2 - np.where(inside, x, 0.0) ** 2))
    return x.astype(np.float32), np.where(inside, 2.0 * height, 0.0).astype(np.float32)


def train(log_dir: str, fixed: bool = False) -> keras.Model:
    keras.utils.set_random_seed(1)
    bump = BumpOfItsWidth(name="bump") if fixed else Bump(name="bump")
    scale = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", name="scale")
    model = keras.Sequential([keras.Input((1,)), bump, scale], name="bump_in_cond")
    model.compile(optimizer=keras.optimizers.Adam(0.05), loss="mse")
    x, heights = make_data()
    recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=1, try_fixes=True)
    model.fit(x, heights, batch_size=16, callbacks=[recorder])
    return model


if __name__ == "__main__":
    train(sys.argv[1], fixed="fixed" in sys.argv[2:])
