# mypy: ignore-errors
import keras
import numpy as np
from keras import ops


class PatchAttention(keras.layers.Layer):
    """Single-head attention between image patches."""

    def __init__(self, dim, **kw):
        super().__init__(**kw)
        self.dim = dim

    def build(self, shape):
        d = shape[-1]
        self.wq = self.add_weight(name="wq", shape=(d, self.dim), initializer="glorot_uniform")
        self.wk = self.add_weight(name="wk", shape=(d, self.dim), initializer="glorot_uniform")
        self.wv = self.add_weight(name="wv", shape=(d, self.dim), initializer="glorot_uniform")

    def call(self, x):
        q, k, v = (ops.matmul(x, w) for w in (self.wq, self.wk, self.wv))
        scores = ops.matmul(q, ops.transpose(k, (0, 2, 1)))
        return ops.matmul(ops.softmax(scores, axis=-1), v)

    def compute_output_shape(self, shape):
        return (*shape[:-1], self.dim)


def build():
    keras.utils.set_random_seed(12)
    patches = keras.Input((6, 16), name="patches")
    h = PatchAttention(24, name="mixer")(patches)
    h = keras.layers.LayerNormalization(name="norm")(h)
    out = keras.layers.Dense(4, name="label")(keras.layers.GlobalAveragePooling1D(name="pool")(h))
    model = keras.Model(patches, out)
    model.compile("adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    rng = np.random.default_rng(12)
    x = rng.integers(0, 256, size=(4, 6, 16)).astype("float32") / 255.0
    y = rng.integers(0, 4, size=(4,)).astype("int32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 4}}
