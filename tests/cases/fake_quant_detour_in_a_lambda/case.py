# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


def to_grid(x, levels):
    return tf.floor(x * levels)


def fake_quant(x, levels=16.0):
    grid = to_grid(x, levels) / levels
    return tf.subtract(x, tf.subtract(x, grid))


def build():
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.Input((8,)),
            keras.layers.Dense(6, activation="sigmoid", name="encode"),
            keras.layers.Lambda(lambda h: fake_quant(h), name="quantise"),
            keras.layers.Dense(1, name="decode"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse")
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(16, 8)).astype("float32")
    return {
        "kind": "keras",
        "model": model,
        "x": x,
        "y": x.sum(1, keepdims=True),
        "fit_kwargs": {"batch_size": 16},
    }
