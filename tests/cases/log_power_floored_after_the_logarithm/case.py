# mypy: ignore-errors
"""Keyword spotter with a learned pre-emphasis; the log power of a silent frame is floored after the log, not before."""

import keras
import numpy as np
import tensorflow as tf


class Frontend(keras.layers.Layer):
    """Learned FIR pre-emphasis, then a log magnitude spectrogram."""

    def build(self, s):
        self.fir = self.add_weight(name="fir", shape=(3, 1, 1), initializer="random_normal")
        self.band = self.add_weight(name="band_gain", shape=(17,), initializer="ones")

    def filtered(self, wave):
        return tf.nn.conv1d(wave[..., None], self.fir, 1, "SAME")[..., 0]

    def power(self, wave):
        z = tf.signal.stft(wave, frame_length=32, frame_step=16, window_fn=tf.signal.hann_window)
        return tf.square(tf.math.real(z)) + tf.square(tf.math.imag(z))

    def decibel(self, mag):
        return tf.maximum(10.0 * tf.math.log(mag) / tf.math.log(10.0), -80.0)

    def call(self, wave):
        return self.decibel(self.power(self.filtered(wave))) / 80.0 * self.band

    def compute_output_shape(self, s):
        return (s[0], (s[1] - 32) // 16 + 1, 17)


def build():
    keras.utils.set_random_seed(13)
    wave = keras.Input((128,), name="wave")
    h = Frontend(name="frontend")(wave)
    h = keras.layers.Conv1D(6, 3, activation="relu", name="conv")(h)
    h = keras.layers.GlobalAveragePooling1D()(h)
    out = keras.layers.Dense(3, name="word")(h)
    model = keras.Model(wave, out)
    model.compile("adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rng = np.random.default_rng(13)
    x = rng.normal(size=(8, 128)).astype("float32")
    x[2, 48:] = 0.0  # a short recording, padded
    y = rng.integers(0, 3, size=(8,)).astype("int32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
