# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


@tf.custom_gradient
def quantise(x):
    """Eight levels forward, the identity backward."""

    def backward(upstream):
        return upstream

    return tf.round(x * 4.0) / 4.0, backward


class QuantisedDense(keras.layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, shape):
        self.kernel = self.add_weight(name="kernel", shape=(shape[-1], self.units), initializer="glorot_normal")
        self.bias = self.add_weight(name="bias", shape=(self.units,), initializer="zeros")

    def call(self, x):
        return quantise(tf.tanh(tf.matmul(x, quantise(tf.convert_to_tensor(self.kernel))) + self.bias))

    def compute_output_shape(self, shape):
        return (*shape[:-1], self.units)


def build():
    keras.utils.set_random_seed(132)
    model = keras.Sequential(
        [
            keras.Input((6,)),
            QuantisedDense(8, name="q1"),
            QuantisedDense(8, name="q2"),
            keras.layers.Dense(2, activation="softmax", name="out"),
        ],
        name="net",
    )
    model.compile("adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    rng = np.random.default_rng(132)
    x = rng.normal(size=(16, 6)).astype("float32")
    y = rng.integers(0, 2, size=(16,))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
