# mypy: ignore-errors
import keras
import numpy as np
from keras import ops


class SparseMoE(keras.layers.Layer):
    """Top-1 mixture of experts with capacity; the kernels of all experts are one tensor."""

    def __init__(self, experts, dim, **kw):
        super().__init__(**kw)
        self.experts, self.dim = experts, dim

    def build(self, shape):
        d = shape[-1]
        self.router = self.add_weight(name="router", shape=(d, self.experts), initializer="glorot_uniform")
        self.up = self.add_weight(name="up", shape=(self.experts, d, self.dim), initializer="glorot_uniform")
        self.down = self.add_weight(name="down", shape=(self.experts, self.dim, d), initializer="glorot_uniform")

    def call(self, x):
        probability = ops.softmax(ops.matmul(x, self.router))
        chosen = ops.argmax(probability, axis=-1)
        gate = ops.one_hot(chosen, self.experts, dtype=x.dtype) * probability
        h = ops.relu(ops.einsum("bd,edh->beh", x, self.up))
        y = ops.einsum("beh,ehd->bed", h, self.down)
        return x + ops.einsum("be,bed->bd", gate, y)


def build():
    keras.utils.set_random_seed(78)
    x_in = keras.Input((6,), name="x")
    h = SparseMoE(8, 5, name="moe")(x_in)
    out = keras.layers.Dense(1, name="out")(h)
    model = keras.Model(x_in, out)
    model.compile("adam", loss="mse")
    rng = np.random.default_rng(78)
    x = rng.normal(size=(6, 6)).astype("float32")  # six rows, eight experts: some must idle
    y = rng.normal(size=(6, 1)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 6}}
