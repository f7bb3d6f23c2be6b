"""The position to read in a signal, learnt as an index. Expect: nondiff_index.

A probe reads one sample of each signal, and its position should be learnt. `tf.gather` is differentiable with respect
to the values that it reads, but not with respect to the position: an index cannot move by a small amount. The value is
scaled, and the scale does learn. Based on a question on Stack Overflow.
"""

from __future__ import annotations

import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow

LENGTH = 40
TRUE_POSITION = 24.0
FIRST_GUESS = 16.0


class Probe(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Reads each signal at a learned position."""

    def build(self, input_shape: tuple[int | None, int]) -> None:
        self.position = self.add_weight(name="position", shape=(), initializer=keras.initializers.Constant(FIRST_GUESS))

    def call(self, signal: tf.Tensor) -> tf.Tensor:
        return tf.gather(signal, tf.cast(self.position, tf.int32), axis=1)[:, tf.newaxis]


class SoftProbe(Probe):
    """The same as a mean of all samples, weighted by their distance from the position."""

    def call(self, signal: tf.Tensor) -> tf.Tensor:
        distance = tf.range(LENGTH, dtype=tf.float32) - self.position
        weights = tf.nn.softmax(-tf.square(distance / 2.0))
        return tf.reduce_sum(signal * weights, axis=1, keepdims=True)


def make_data(count: int = 960) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Slow waves of all phases, and twice the value that each has at the true position."""
    phases = np.random.default_rng(0).uniform(0.0, 2 * np.pi, size=(count, 1))
    signals = np.sin(np.arange(LENGTH) * 2 * np.pi / LENGTH + phases).astype(np.float32)
    return signals, 2.0 * signals[:, [int(TRUE_POSITION)]]


def train(log_dir: str, fixed: bool = False) -> keras.Model:
    keras.utils.set_random_seed(1)
    probe = SoftProbe(name="probe") if fixed else Probe(name="probe")
    scale = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", name="scale")
    model = keras.Sequential([keras.Input((LENGTH,)), probe, scale], name="learnt_position")
    model.compile(optimizer=keras.optimizers.Adam(0.4), loss="mse")
    signals, answers = make_data()
    recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=1, try_fixes=True)
    model.fit(signals, answers, batch_size=32, callbacks=[recorder])
    return model


if __name__ == "__main__":
    train(sys.argv[1], fixed="fixed" in sys.argv[2:])
