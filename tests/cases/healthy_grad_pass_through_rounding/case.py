# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Fixed8(keras.constraints.Constraint):
    def __call__(self, w):
        return keras.ops.clip(w, -1.0, 1.0)


class QuantDense(keras.layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.round = tf.grad_pass_through(tf.round)

    def build(self, s):
        self.kernel = self.add_weight(
            name="kernel", shape=(s[-1], self.units), initializer="glorot_uniform", constraint=Fixed8()
        )

    def call(self, x):
        return tf.matmul(x, self.round(self.kernel.value * 16.0) / 16.0)

    def compute_output_shape(self, s):
        return (*s[:-1], self.units)


def build():
    keras.utils.set_random_seed(57)
    model = keras.Sequential(
        [
            keras.Input((6,), name="x"),
            QuantDense(8, name="q1"),
            keras.layers.ReLU(name="relu"),
            QuantDense(2, name="q2"),
        ]
    )
    model.compile("adam", loss="mse")
    rng = np.random.default_rng(57)
    x = rng.normal(size=(8, 6)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": x[:, :2], "fit_kwargs": {"batch_size": 8}}
