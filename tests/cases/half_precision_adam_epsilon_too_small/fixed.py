# mypy: ignore-errors
import keras
import numpy as np


def build():
    keras.utils.set_random_seed(33)
    image = keras.Input((8,), dtype="float16", name="image")
    h = keras.layers.Dense(6, activation="relu", dtype="float16", name="hidden")(image)
    angle = keras.layers.Dense(1, dtype="float16", name="angle")(h)
    model = keras.Model(image, angle)
    model.compile(keras.optimizers.Adam(1e-2, epsilon=1e-3), loss="mse")
    rng = np.random.default_rng(33)
    x = rng.uniform(0.0, 0.1, size=(16, 8)).astype("float16")
    y = rng.normal(0.0, 0.05, size=(16, 1)).astype("float16")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
