"""An LSTM whose output is kept only at the padding. Expect: mask_multiplies_to_zero.

Recordings of different lengths are padded with zeros at the front, and the outputs at the padding should be masked. The
mask is inverted: it is zero for everything that was recorded, including the last sample, and the LSTM learns nothing.
Based on a question on Stack Overflow.
"""

from __future__ import annotations

import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow

LENGTH = 8


class Listener(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Estimates the mean of a recording with an LSTM."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # cuDNN, which Keras prefers on a GPU, supports only masks with the padding at the end.
        self.lstm = keras.layers.LSTM(8, return_sequences=True, use_cudnn=False, name="lstm")
        self.answer = keras.layers.Dense(1, name="answer")

    def call(self, recording: tf.Tensor) -> tf.Tensor:
        return self.answer(self.hear(recording)[:, -1])

    def hear(self, recording: tf.Tensor) -> tf.Tensor:
        mask = tf.cast(tf.equal(recording, 0.0), tf.float32)
        return self.lstm(recording) * mask


class MaskingListener(Listener):
    """The same with Keras's own masking, which makes the LSTM skip the padding."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.masking = keras.layers.Masking(0.0)

    def hear(self, recording: tf.Tensor) -> tf.Tensor:
        return self.lstm(self.masking(recording))


def make_data(count: int = 800) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Recordings padded with zeros at the front, and the mean of each."""
    random = np.random.default_rng(0)
    loudness = random.normal(size=(count, 1, 1))
    recorded = np.arange(LENGTH)[:, np.newaxis] >= random.integers(0, LENGTH // 2, size=(count, 1, 1))
    recordings = np.where(recorded, loudness + random.normal(scale=0.3, size=(count, LENGTH, 1)), 0.0)
    return recordings.astype(np.float32), loudness[:, 0].astype(np.float32)


def train(log_dir: str, fixed: bool = False) -> keras.Model:
    keras.utils.set_random_seed(1)
    model = MaskingListener(name="listener") if fixed else Listener(name="listener")
    model.compile(optimizer=keras.optimizers.Adam(0.03), loss="mse")
    recordings, loudness = make_data()
    recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=1, try_fixes=True)
    model.fit(recordings, loudness, batch_size=32, callbacks=[recorder])
    return model


if __name__ == "__main__":
    train(sys.argv[1], fixed="fixed" in sys.argv[2:])
