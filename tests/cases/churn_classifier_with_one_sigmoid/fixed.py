# mypy: ignore-errors
import keras
import numpy as np


def build():
    keras.utils.set_random_seed(17)
    model = keras.Sequential(
        [
            keras.Input((9,), name="customer"),
            keras.layers.Dense(8, activation="relu", name="first"),
            keras.layers.BatchNormalization(name="norm"),
            keras.layers.Dense(4, activation="relu", name="second"),
            keras.layers.Dense(1, activation="sigmoid", name="churn"),
        ]
    )
    model.compile("adam", loss="binary_crossentropy")
    rng = np.random.default_rng(17)
    return {
        "kind": "keras",
        "model": model,
        "x": rng.normal(size=(16, 9)).astype("float32"),
        "y": rng.integers(0, 2, (16, 1)).astype("float32"),
        "fit_kwargs": {"batch_size": 16},
    }
