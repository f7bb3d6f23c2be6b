"""A filter whose thresholds should be learnt, but never move. Expect: nondiff_comparison.

Each of four sensors has a signal up to a certain sample, and only noise after it. A layer with a trainable threshold
per channel should learn where to stop. Based on a question on Stack Overflow.
"""

from __future__ import annotations

import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow

WIDTH = 32
TRUE_THRESHOLDS = (8, 14, 22, 26)
FIRST_GUESS = 18.0


class StepFilter(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Passes each channel up to its threshold."""

    def build(self, input_shape: tuple[int | None, int, int]) -> None:
        _, self.width, channels = input_shape
        self.threshold = self.add_weight(
            name="threshold", shape=(channels,), initializer=keras.initializers.Constant(FIRST_GUESS)
        )

    def call(self, signal: tf.Tensor) -> tf.Tensor:
        threshold = tf.clip_by_value(self.threshold, 0.0, float(self.width))
        return signal * tf.transpose(self.mask(threshold))

    def mask(self, threshold: tf.Tensor) -> tf.Tensor:
        """For each channel, one number per sample: whether it passes."""
        return tf.sequence_mask(threshold, self.width, dtype=tf.float32)


class SoftStepFilter(StepFilter):
    """The same with a soft step: its slope shows from either side in which direction to move."""

    def mask(self, threshold: tf.Tensor) -> tf.Tensor:
        sample = tf.range(self.width, dtype=tf.float32)
        return tf.sigmoid((threshold[:, tf.newaxis] - sample) / 2.0)


def make_model(fixed: bool) -> keras.Model:
    filter_class = SoftStepFilter if fixed else StepFilter
    return keras.Sequential(
        [
            keras.Input((WIDTH, len(TRUE_THRESHOLDS))),
            filter_class(name="step_filter"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(16, activation="relu", name="hidden"),
            keras.layers.Dense(1, name="answer"),
        ],
        name="sensors",
    )


def make_data(count: int = 2048) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Signals, and a target that depends only on the samples before the true thresholds."""
    random = np.random.default_rng(0)
    signals = random.normal(size=(count, WIDTH, len(TRUE_THRESHOLDS)))
    matters = np.arange(WIDTH)[:, np.newaxis] < TRUE_THRESHOLDS
    heard = (signals * matters).sum(axis=1) @ [1, -1, 1, -1] / 8
    answers = np.tanh(heard) + random.normal(scale=0.05, size=count)
    return signals.astype(np.float32), answers[:, np.newaxis].astype(np.float32)


def train(log_dir: str, fixed: bool = False, epochs: int = 10) -> keras.Model:
    keras.utils.set_random_seed(1)
    model = make_model(fixed)
    model.compile(optimizer=keras.optimizers.Adam(0.05), loss="mse")
    signals, answers = make_data()
    recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=8, try_fixes=True)
    model.fit(signals, answers, batch_size=64, epochs=epochs, callbacks=[recorder])
    return model


if __name__ == "__main__":
    train(sys.argv[1], fixed="fixed" in sys.argv[2:])
