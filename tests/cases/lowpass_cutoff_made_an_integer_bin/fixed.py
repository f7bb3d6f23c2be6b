# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


def positions(bins):
    return tf.range(bins)


def lowpass_mask(cutoff, bins):
    """About 1 for the bins below the cutoff, and about 0 above it."""
    last_bin = cutoff * bins
    return tf.sigmoid((last_bin - tf.cast(positions(bins), tf.float32)) / 0.5)


class LowPass(keras.layers.Layer):
    def build(self, shape):
        self.cutoff = self.add_weight(name="cutoff", shape=(), initializer=keras.initializers.Constant(0.7))

    def call(self, spectrum):
        return spectrum * lowpass_mask(self.cutoff, spectrum.shape[-1])


def build():
    keras.utils.set_random_seed(3)
    inputs = keras.Input((10, 16))
    hidden = LowPass(name="lowpass")(inputs)
    hidden = keras.layers.Dense(8, activation="gelu", name="mix")(hidden)
    hidden = keras.layers.GlobalAveragePooling1D()(hidden)
    model = keras.Model(inputs, keras.layers.Dense(1, name="score")(hidden))
    model.compile(keras.optimizers.Adam(0.01), "mse")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(16, 10, 16)).astype("float32")
    return {
        "kind": "keras",
        "model": model,
        "x": x,
        "y": x[:, :, :6].sum(-1).mean(-1, keepdims=True),
        "fit_kwargs": {"batch_size": 16},
    }
