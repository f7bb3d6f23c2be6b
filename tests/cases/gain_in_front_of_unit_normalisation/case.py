# mypy: ignore-errors
import keras
import numpy as np


class Gain(keras.layers.Layer):
    def build(self, shape):
        self.gain = self.add_weight(name="gain", shape=(), initializer=keras.initializers.Constant(1.5))

    def call(self, x):
        return x * self.gain


def build():
    keras.utils.set_random_seed(42)
    model = keras.Sequential(
        [
            keras.Input((6,), name="face"),
            keras.layers.Dense(8, name="project"),
            Gain(name="scale"),
            keras.layers.UnitNormalization(name="sphere"),
            keras.layers.Dense(3, activation="softmax", name="who"),
        ]
    )
    model.compile("adam", loss="sparse_categorical_crossentropy")
    rng = np.random.default_rng(42)
    return {
        "kind": "keras",
        "model": model,
        "x": rng.normal(size=(12, 6)).astype("float32"),
        "y": rng.integers(0, 3, 12),
        "fit_kwargs": {"batch_size": 12},
    }
