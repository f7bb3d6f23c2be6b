# mypy: ignore-errors
import keras
import numpy as np
from keras import ops


class MaskedMean(keras.layers.Layer):
    """Mean over the real tokens (id > 0)."""

    def call(self, inputs):
        ids, vectors = inputs
        real = ops.cast(ops.not_equal(ids, 0), vectors.dtype)[..., None]
        return self._total(real, vectors) / self._count(real)

    def _total(self, real, vectors):
        return ops.sum(real * vectors, axis=1)

    def _count(self, real):
        return ops.maximum(ops.sum(real, axis=1), 1.0)

    def compute_output_shape(self, shapes):
        return (shapes[1][0], shapes[1][2])


def build():
    keras.utils.set_random_seed(51)
    ids = keras.Input((6,), dtype="int32", name="ids")
    vectors = keras.layers.Embedding(20, 5, name="words")(ids)
    vectors = keras.layers.Conv1D(5, 3, padding="same", activation="relu", name="context")(vectors)
    h = MaskedMean(name="pool")([ids, vectors])
    out = keras.layers.Dense(3, activation="softmax", name="topic")(h)
    model = keras.Model(ids, out)
    model.compile("adam", loss="sparse_categorical_crossentropy")
    rng = np.random.default_rng(51)
    x = rng.integers(1, 20, size=(6, 6)).astype("int32")
    x[:, 4:] = 0
    x[5] = 0  # an empty document
    y = rng.integers(0, 3, size=(6,)).astype("int32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 6}}
