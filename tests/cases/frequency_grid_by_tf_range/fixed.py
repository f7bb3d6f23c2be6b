# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class LearnedFourier(keras.layers.Layer):
    """Random-phase Fourier features on a frequency grid with learned spacing."""

    def __init__(self, count, **kwargs):
        super().__init__(**kwargs)
        self.count = count

    def build(self, shape):
        self.spacing = self.add_weight(name="spacing", shape=(), initializer=keras.initializers.Constant(0.3))
        self.phase = self.add_weight(name="phase", shape=(self.count,), initializer="random_uniform")

    def frequencies(self):
        return tf.range(self.count, dtype=tf.float32) * self.spacing

    def call(self, x):
        return tf.sin(x * self.frequencies() + self.phase)

    def compute_output_shape(self, shape):
        return (shape[0], self.count)


def build():
    keras.utils.set_random_seed(41)
    position = keras.Input((1,), name="position")
    h = LearnedFourier(8, name="fourier")(position)
    h = keras.layers.Dense(16, activation="relu", name="h1")(h)
    model = keras.Model(position, keras.layers.Dense(3, activation="sigmoid", name="colour")(h))
    model.compile("adam", loss="mse")
    rng = np.random.default_rng(41)
    x = rng.uniform(-3, 3, size=(16, 1)).astype("float32")
    y = rng.uniform(size=(16, 3)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
