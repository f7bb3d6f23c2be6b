# mypy: ignore-errors
import keras
import numpy as np


def build():
    keras.utils.set_random_seed(45)
    words = keras.Input((5,), dtype="int32", name="words")
    h = keras.layers.Embedding(30, 8, name="table")(words)
    h = keras.layers.GlobalAveragePooling1D(name="mean")(h)
    h = keras.layers.Dense(8, activation="tanh", name="mix")(h)
    h = keras.layers.Dense(6, name="sentence")(h)
    out = keras.layers.UnitNormalization(name="unit")(h)
    model = keras.Model(words, out)
    model.compile("adam", loss=lambda y, p: -keras.ops.mean(keras.ops.sum(y * p, axis=-1)))
    rng = np.random.default_rng(45)
    x = rng.integers(0, 30, size=(8, 5)).astype("int32")
    y = rng.normal(size=(8, 6))
    y = (y / np.linalg.norm(y, axis=1, keepdims=True)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
