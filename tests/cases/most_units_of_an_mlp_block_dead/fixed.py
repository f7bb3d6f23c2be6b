# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Block(keras.layers.Layer):
    """Residual MLP block of a transformer whose bias starts at zero."""

    def __init__(self, width, **options):
        super().__init__(**options)
        self.norm = keras.layers.LayerNormalization(name="norm")
        self.up = keras.layers.Dense(4 * width, name="up")
        self.down = keras.layers.Dense(width, name="down")

    def call(self, x):
        return x + self.down(tf.nn.relu(self.up(self.norm(x))))


def build():
    keras.utils.set_random_seed(4)
    tokens = keras.Input((6, 8), name="tokens")
    hidden = Block(8, name="block")(tokens)
    outputs = keras.layers.Dense(2, name="waypoint")(keras.layers.GlobalAveragePooling1D()(hidden))
    model = keras.Model(tokens, outputs, name="fusion")
    model.compile(keras.optimizers.Adam(1e-3), "mae")
    rng = np.random.default_rng(4)
    x = rng.normal(size=(16, 6, 8)).astype("float32")
    y = x.mean(axis=1)[:, :2] * 3.0
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
