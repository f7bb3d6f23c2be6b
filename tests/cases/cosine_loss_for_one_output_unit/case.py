# mypy: ignore-errors
import keras
import numpy as np


def build():
    keras.utils.set_random_seed(16)
    model = keras.Sequential(
        [
            keras.Input((5,), name="returns"),
            keras.layers.Dense(8, activation="tanh", name="hidden"),
            keras.layers.Dense(1, name="forecast"),
        ]
    )
    model.compile("adam", loss=keras.losses.CosineSimilarity(axis=-1))
    rng = np.random.default_rng(16)
    return {
        "kind": "keras",
        "model": model,
        "x": rng.normal(size=(16, 5)).astype("float32"),
        "y": rng.normal(size=(16, 1)).astype("float32"),
        "fit_kwargs": {"batch_size": 16},
    }
