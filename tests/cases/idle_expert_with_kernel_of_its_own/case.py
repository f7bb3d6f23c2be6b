# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Mixture(keras.layers.Layer):
    """Top-1 mixture of experts; every expert sees all rows, the gate picks one of them."""

    def __init__(self, experts, dim, **kw):
        super().__init__(**kw)
        self.router = keras.layers.Dense(experts, use_bias=False, name="router")
        self.experts = [keras.layers.Dense(dim, activation="tanh", name=f"expert{i}") for i in range(experts)]

    def build(self, shape):
        self.router.build(shape)
        for e in self.experts:
            e.build(shape)

    def call(self, x):
        logits = self.router(x) + tf.constant([0.0, -9.0, 0.0])  # load balancing has pushed expert 1 aside
        value, index = tf.math.top_k(tf.nn.softmax(logits), k=1)
        gate = tf.one_hot(index[:, 0], len(self.experts)) * value
        y = tf.stack([e(x) for e in self.experts], axis=1)
        return tf.reduce_sum(gate[..., None] * y, axis=1)


def build():
    keras.utils.set_random_seed(79)
    x_in = keras.Input((5,), name="x")
    h = Mixture(3, 6, name="mixture")(x_in)
    out = keras.layers.Dense(2, activation="softmax", name="label")(h)
    model = keras.Model(x_in, out)
    model.compile("adam", loss="sparse_categorical_crossentropy")
    rng = np.random.default_rng(79)
    x = rng.normal(size=(16, 5)).astype("float32")
    y = rng.integers(0, 2, size=(16,)).astype("int32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
