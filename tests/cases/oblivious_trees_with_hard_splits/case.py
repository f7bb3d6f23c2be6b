# mypy: ignore-errors
"""Neural oblivious decision ensemble for a table: learned features, learned thresholds, learned leaves."""

import keras
import numpy as np
import tensorflow as tf

FEATURES, TREES, DEPTH = 6, 3, 2


class FeatureSelector(keras.layers.Layer):
    """a soft choice of one input feature for every split"""

    def build(self, s):
        self.choice = self.add_weight(name="choice", shape=(s[-1], TREES, DEPTH), initializer="random_normal")

    def call(self, x):
        weights = keras.ops.softmax(keras.ops.expand_dims(self.choice, 1), axis=1)[:, 0]
        return keras.ops.einsum("bf,ftd->btd", x, weights)


class ObliviousSplit(keras.layers.Layer):
    def build(self, s):
        self.threshold = self.add_weight(name="threshold", shape=(TREES, DEPTH), initializer="random_normal")
        self.leaves = self.add_weight(name="leaves", shape=(TREES, 2**DEPTH), initializer="random_normal")
        codes = np.array([[(leaf >> d) & 1 for d in range(DEPTH)] for leaf in range(2**DEPTH)], "float32")
        self.codes = tf.constant(codes)

    def route(self, chosen):
        right = keras.ops.cast(keras.ops.greater_equal(chosen, self.threshold), "float32")
        both = right[:, :, None, :] * self.codes + (1.0 - right[:, :, None, :]) * (1.0 - self.codes)
        return keras.ops.prod(both, axis=-1)

    def call(self, chosen):
        return keras.ops.einsum("btl,tl->bt", self.route(chosen), self.leaves)

    def compute_output_shape(self, s):
        return (s[0], TREES)


class Ensemble(keras.layers.Layer):
    def __init__(self, **kw):
        super().__init__(**kw)
        self.select = FeatureSelector(name="select")
        self.split = ObliviousSplit(name="split")

    def build(self, s):
        self.select.build(s)
        self.split.build((s[0], TREES, DEPTH))

    def call(self, x):
        chosen = self.select(x)
        return keras.ops.concatenate([self.split(chosen), keras.ops.mean(chosen, axis=2)], axis=-1)

    def compute_output_shape(self, s):
        return (s[0], 2 * TREES)


def build():
    keras.utils.set_random_seed(6926)
    inp = keras.Input((FEATURES,), name="table")
    norm = keras.layers.BatchNormalization(name="norm")(inp)
    trees = Ensemble(name="trees")(norm)
    out = keras.layers.Dense(1, name="out")(trees)
    model = keras.Model(inp, out)
    model.compile("adam", loss="mse")
    rng = np.random.default_rng(17)
    x = rng.normal(size=(16, FEATURES)).astype("float32")
    y = rng.normal(size=(16, 1)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
