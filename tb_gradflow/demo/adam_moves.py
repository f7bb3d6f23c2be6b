"""A head with a zero gradient, which Adam moves nevertheless. Expect: mask_multiplies_to_zero.

A model has two tasks, and after some steps there are no labels for the second: a mask multiplies its error by zero. Its
head then gets a gradient of exactly zero but keeps moving, because Adam remembers earlier gradients. Based on a
question on Stack Overflow.
"""

from __future__ import annotations

import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow

STEPS = 24
LABELLED_STEPS = 6
BATCH = 16
MISSING = -1.0


class TwoTasks(keras.Model):  # type: ignore[misc]  # Keras has no types
    """One head for each task, on top of a shared part."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.shared = keras.layers.Dense(8, activation="tanh", name="shared")
        self.first = keras.layers.Dense(1, name="first")
        self.second = keras.layers.Dense(1, name="second")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        shared = self.shared(x)
        return tf.concat([self.first(shared), self.second(shared)], axis=1)


def loss_of_labelled(true: tf.Tensor, told: tf.Tensor) -> tf.Tensor:
    is_labelled = tf.cast(tf.not_equal(true, MISSING), tf.float32)
    return tf.reduce_mean(tf.square(is_labelled * (told - true)))


def make_data() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Batches in order: after some of them, the second task has no labels."""
    x = np.random.default_rng(0).normal(size=(STEPS * BATCH, 4)).astype(np.float32)
    answers = np.tanh(x[:, :2])
    answers[LABELLED_STEPS * BATCH :, 1] = MISSING
    return x, answers


def train(log_dir: str, fixed: bool = False) -> keras.Model:
    keras.utils.set_random_seed(1)
    model = TwoTasks(name="two_tasks")
    without_memory, with_memory = keras.optimizers.SGD(0.1), keras.optimizers.Adam(0.01)
    model.compile(optimizer=without_memory if fixed else with_memory, loss=loss_of_labelled)
    x, answers = make_data()
    recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=1, try_fixes=True)
    model.fit(x, answers, batch_size=BATCH, shuffle=False, callbacks=[recorder])
    return model


if __name__ == "__main__":
    train(sys.argv[1], fixed="fixed" in sys.argv[2:])
