"""A table of results, filled cell by cell in a `tf.Variable`. Expect: variable_assign.

The share of each of two boxes that a product leaves empty is computed from the lengths of their sides; the sizes of the
boxes should be learnt. A tape tracks tensors: a value that is assigned to a variable and read back has no history.
Based on a question on Stack Overflow.
"""

from __future__ import annotations

import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow

BATCH = 8
TRUE_BOXES = ((2.0, 1.5), (2.0, 2.5), (1.5, 2.0))
FIRST_GUESS = 1.5


class FreeSpace(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """The share of each box that a product leaves empty; each column of `box` holds the sides of one box."""

    def build(self, input_shape: tuple[int, int]) -> None:
        self.box = self.add_weight(name="box", shape=(3, 2), initializer=keras.initializers.Constant(FIRST_GUESS))
        self.result = tf.Variable(tf.zeros((BATCH, 2)), trainable=False, name="result")

    def call(self, product: tf.Tensor) -> tf.Tensor:
        for i in range(BATCH):
            for j in range(2):
                size = tf.reduce_prod(self.box[:, j])
                self.result[i, j].assign((size - tf.reduce_prod(product[i])) / size)
        return self.result + 0.0


class FreeSpaceAsTensor(FreeSpace):
    """The same, but the results stay tensors."""

    def call(self, product: tf.Tensor) -> tf.Tensor:
        size = tf.reduce_prod(self.box, axis=0)
        return tf.stack([(size - tf.reduce_prod(product[i])) / size for i in range(BATCH)])


def make_data(count: int = 200) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Sides of products, and the empty shares in the true boxes, measured with a scale that is slightly off."""
    products = np.random.default_rng(0).uniform(0.5, 1.5, size=(count, 3)).astype(np.float32)
    sizes = np.prod(TRUE_BOXES, axis=0)
    free = 1.0 - products.prod(axis=1, keepdims=True) / sizes
    return products, (free + 0.1).astype(np.float32)


class Scale(keras.layers.Layer):  # type: ignore[misc]
    """Adds the error of the scale."""

    def build(self, input_shape: tuple[int, int]) -> None:
        self.offset = self.add_weight(name="offset", shape=(), initializer="zeros")

    def call(self, free: tf.Tensor) -> tf.Tensor:
        return free + self.offset


def train(log_dir: str, fixed: bool = False) -> keras.Model:
    keras.utils.set_random_seed(1)
    free_space = FreeSpaceAsTensor(name="free_space") if fixed else FreeSpace(name="free_space")
    model = keras.Sequential(
        [keras.Input((3,), batch_size=BATCH), free_space, Scale(name="scale")], name="result_variable"
    )
    model.compile(optimizer=keras.optimizers.Adam(0.1), loss="mse")
    products, free = make_data()
    recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=1, try_fixes=True)
    model.fit(products, free, batch_size=BATCH, callbacks=[recorder])
    return model


if __name__ == "__main__":
    train(sys.argv[1], fixed="fixed" in sys.argv[2:])
