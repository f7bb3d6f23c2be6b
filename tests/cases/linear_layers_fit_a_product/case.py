# mypy: ignore-errors
import keras
import numpy as np
from keras import layers


def build():
    keras.utils.set_random_seed(48)
    model = keras.Sequential(
        [
            keras.Input((2,)),
            layers.Dense(16, name="wide"),
            layers.Dense(1, name="product"),
        ]
    )
    rng = np.random.default_rng(48)
    x = rng.normal(size=(64, 2)).astype("float32")
    model.compile(keras.optimizers.Adam(1e-2), loss="mse")
    return {"kind": "keras", "model": model, "x": x, "y": x[:, :1] * x[:, 1:], "fit_kwargs": {"batch_size": 32}}
