# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Smoother(keras.layers.Layer):
    """Savitzky-like smoothing of every channel by a NumPy routine, scaled by a learned gain."""

    def build(self, shape):
        self.gain = self.add_weight(name="gain", shape=(shape[-1],), initializer="ones")

    @staticmethod
    def smooth(series):
        return np.convolve(series, np.array([0.25, 0.5, 0.25], np.float32), mode="same").astype("float32")

    def one(self, series):
        return tf.ensure_shape(tf.numpy_function(self.smooth, [series], tf.float32), series.shape)

    def call(self, x):
        channels = tf.transpose(x, [2, 0, 1])
        flat = tf.reshape(channels, [-1, x.shape[1]])
        smooth = tf.map_fn(self.one, flat)
        return tf.transpose(tf.reshape(smooth, tf.shape(channels)), [1, 2, 0]) * self.gain

    def compute_output_shape(self, shape):
        return shape


def build():
    keras.utils.set_random_seed(76)
    signal = keras.Input((10, 2), name="signal")
    h = keras.layers.Conv1D(3, 3, padding="same", activation="tanh", name="features")(signal)
    h = Smoother(name="smooth")(h)
    h = keras.layers.GlobalMaxPooling1D(name="pool")(h)
    model = keras.Model(signal, keras.layers.Dense(1, name="quality")(h))
    model.compile("adam", loss="mae")
    rng = np.random.default_rng(76)
    x = rng.normal(size=(4, 10, 2)).astype("float32")
    y = rng.normal(size=(4, 1)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 4}}
