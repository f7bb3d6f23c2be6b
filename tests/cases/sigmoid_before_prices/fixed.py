# mypy: ignore-errors
import keras
import numpy as np
from keras import layers


def build():
    keras.utils.set_random_seed(77)
    model = keras.Sequential(
        [
            keras.Input((6,)),
            layers.Dense(24, activation="relu", name="rooms"),
            layers.Dense(1, name="price"),
        ]
    )
    rng = np.random.default_rng(77)
    x = rng.normal(size=(64, 6)).astype("float32")
    prices = (12 + 4 * x[:, :1] - 2 * x[:, 1:2]).astype("float32")
    model.compile(keras.optimizers.Adam(1e-2), loss="mse")
    return {"kind": "keras", "model": model, "x": x, "y": prices, "fit_kwargs": {"batch_size": 32}}
