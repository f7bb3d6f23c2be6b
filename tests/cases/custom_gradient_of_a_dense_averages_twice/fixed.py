# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class FusedDense(keras.layers.Layer):
    """x @ w + b with a hand-written backward pass, for a fused kernel."""

    def __init__(self, units, **kw):
        super().__init__(**kw)
        self.units = units

    def build(self, shape):
        self.w = self.add_weight(name="w", shape=(shape[-1], self.units))
        self.b = self.add_weight(name="b", shape=(self.units,), initializer="zeros")

    def call(self, x):
        @tf.custom_gradient
        def fused(x, w, b):
            def backward(dy):
                dw = tf.matmul(x, dy, transpose_a=True)
                return tf.matmul(dy, w, transpose_b=True), dw, tf.reduce_sum(dy, axis=0)

            return tf.matmul(x, w) + b, backward

        return fused(x, tf.convert_to_tensor(self.w), tf.convert_to_tensor(self.b))

    def compute_output_shape(self, shape):
        return (shape[0], self.units)


def build():
    keras.utils.set_random_seed(74)
    x_in = keras.Input((5,), name="x")
    h = keras.layers.Dense(8, activation="relu", name="plain")(x_in)
    h = keras.layers.Activation("tanh", name="act")(FusedDense(6, name="fused")(h))
    out = keras.layers.Dense(1, name="out")(h)
    model = keras.Model(x_in, out)
    model.compile("sgd", loss="mse")
    rng = np.random.default_rng(74)
    x = rng.normal(size=(16, 5)).astype("float32")
    y = rng.normal(size=(16, 1)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
