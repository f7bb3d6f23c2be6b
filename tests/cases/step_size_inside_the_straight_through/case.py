# mypy: ignore-errors
"""Learned step size quantisation; the whole quantised value is wrapped in the straight-through, the step with it."""

import keras
import numpy as np
import tensorflow as tf


def quantise(v, step, low, high):
    q = tf.round(tf.clip_by_value(v / step, low, high)) * step
    return v + tf.stop_gradient(q - v)


class QDense(keras.layers.Layer):
    def __init__(self, units, bits=4, activation=None, **kw):
        super().__init__(**kw)
        self.units = units
        self.low, self.high = float(-(2 ** (bits - 1))), float(2 ** (bits - 1) - 1)
        self.activation = keras.activations.get(activation)

    def build(self, s):
        self.kernel = self.add_weight(name="kernel", shape=(s[-1], self.units), initializer="glorot_uniform")
        self.bias = self.add_weight(name="bias", shape=(self.units,), initializer="zeros")
        self.w_step = self.add_weight(name="w_step", shape=(), initializer=keras.initializers.Constant(0.1))
        self.a_step = self.add_weight(name="a_step", shape=(), initializer=keras.initializers.Constant(0.2))

    def call(self, x):
        w = quantise(self.kernel, self.w_step, self.low, self.high)
        return self.activation(tf.matmul(quantise(x, self.a_step, self.low, self.high), w) + self.bias)

    def compute_output_shape(self, s):
        return (*s[:-1], self.units)


def build():
    keras.utils.set_random_seed(17)
    inp = keras.Input((6,), name="x")
    h = QDense(8, activation="relu", name="q1")(inp)
    h = keras.layers.LayerNormalization(name="ln")(h)
    out = QDense(3, name="q2")(h)
    model = keras.Model(inp, out)
    model.compile(keras.optimizers.SGD(0.01), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rng = np.random.default_rng(17)
    x = rng.normal(size=(16, 6)).astype("float32")
    y = rng.integers(0, 3, size=(16,)).astype("int32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
