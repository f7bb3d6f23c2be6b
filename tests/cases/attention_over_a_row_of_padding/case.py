# mypy: ignore-errors
import keras
import numpy as np
from keras import layers, ops


class Pooler(layers.Layer):
    """Attention pooling over tokens; padding gets -inf."""

    def __init__(self, **kw):
        super().__init__(**kw)
        self.score = layers.Dense(1, use_bias=False, name="score")

    def build(self, shapes):
        self.score.build(shapes[0])

    def attend(self, h, mask):
        s = ops.squeeze(self.score(ops.tanh(h)), -1)
        return ops.softmax(ops.where(mask, s, -float("inf")), axis=-1)

    def call(self, inputs):
        h, mask = inputs
        return ops.einsum("bt,btd->bd", self.attend(h, mask), h)

    def compute_output_shape(self, shapes):
        return (shapes[0][0], shapes[0][2])


def build():
    keras.utils.set_random_seed(68)
    ids = keras.Input((5,), dtype="int32", name="ids")
    mask = layers.Lambda(lambda t: ops.not_equal(t, 0), output_shape=(5,), name="mask")(ids)
    h = layers.Embedding(25, 6, name="table")(ids)
    h = layers.Bidirectional(layers.GRU(4, return_sequences=True), name="reader")(h)
    h = Pooler(name="pooler")([h, mask])
    out = layers.Dense(2, activation="softmax", name="label")(h)
    model = keras.Model(ids, out)
    model.compile("adam", loss="sparse_categorical_crossentropy")
    rng = np.random.default_rng(68)
    x = rng.integers(1, 25, size=(6, 5)).astype("int32")
    x[:, 3:] = 0
    x[4] = 0  # an empty message
    y = rng.integers(0, 2, size=(6,)).astype("int32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 6}}
