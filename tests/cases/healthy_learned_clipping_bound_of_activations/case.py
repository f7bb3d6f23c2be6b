# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Pact(keras.layers.Layer):
    def build(self, s):
        self.bound = self.add_weight(name="bound", shape=(), initializer=keras.initializers.Constant(0.6))

    def call(self, x):
        return tf.clip_by_value(x, 0.0, self.bound.value)


def build():
    keras.utils.set_random_seed(65)
    model = keras.Sequential(
        [
            keras.Input((6,), name="x"),
            keras.layers.Dense(12, name="expand"),
            Pact(name="pact"),
            keras.layers.Dense(1, name="out"),
        ]
    )
    model.compile("adam", loss="log_cosh")
    rng = np.random.default_rng(65)
    return {
        "kind": "keras",
        "model": model,
        "x": rng.normal(size=(16, 6)).astype("float32"),
        "y": 100.0 * rng.normal(size=(16, 1)).astype("float32"),
        "fit_kwargs": {"batch_size": 16},
    }
