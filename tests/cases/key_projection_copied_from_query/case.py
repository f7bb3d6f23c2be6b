# mypy: ignore-errors
import keras
import numpy as np
from keras import ops


class SelfAttention(keras.layers.Layer):
    def __init__(self, dim, **kw):
        super().__init__(**kw)
        proj = {"use_bias": False, "kernel_regularizer": keras.regularizers.OrthogonalRegularizer(1e-2)}
        self.wq = keras.layers.Dense(dim, name="wq", **proj)
        self.wk = keras.layers.Dense(dim, name="wk", **proj)
        self.wv = keras.layers.Dense(dim, name="wv", **proj)
        self.scale = dim**-0.5

    def build(self, shape):
        for layer in (self.wq, self.wk, self.wv):
            layer.build(shape)

    def scores(self, x):
        q, k = self.wq(x), self.wq(x)
        return ops.softmax(ops.einsum("bqd,bkd->bqk", q, k) * self.scale)

    def call(self, x):
        return ops.einsum("bqk,bkd->bqd", self.scores(x), self.wv(x))


def build():
    keras.utils.set_random_seed(4)
    tokens = keras.Input((5, 8), name="tokens")
    h = SelfAttention(8, name="attention")(tokens)
    h = keras.layers.LayerNormalization(name="norm")(h + tokens)
    out = keras.layers.Dense(2, name="label")(keras.layers.GlobalMaxPooling1D(name="pool")(h))
    model = keras.Model(tokens, out)
    model.compile("adam", loss="mse")
    rng = np.random.default_rng(4)
    x = rng.normal(size=(8, 5, 8)).astype("float32")
    y = rng.normal(size=(8, 2)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
