# mypy: ignore-errors
import keras
import numpy as np


def build():
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((5,), name="weather"),
            keras.layers.Dense(8, activation="relu", name="hidden"),
            keras.layers.Dense(1, name="power"),
        ]
    )
    model.compile("adam", loss="mape")
    rng = np.random.default_rng(20)
    y = np.maximum(rng.normal(size=(16, 1)), 0.0).astype("float32")
    return {
        "kind": "keras",
        "model": model,
        "x": rng.normal(size=(16, 5)).astype("float32"),
        "y": y,
        "fit_kwargs": {"batch_size": 16},
    }
