# mypy: ignore-errors
import keras
import numpy as np


def build():
    keras.utils.set_random_seed(16)
    amounts = keras.Input((5,), name="amounts")
    h = keras.layers.Dense(8, activation="softplus", name="hidden")(amounts)
    fraud = keras.layers.Dense(1, activation="sigmoid", kernel_initializer="glorot_uniform", name="fraud")(h)
    size = keras.layers.Dense(1, name="size")(h)
    model = keras.Model(amounts, [fraud, size])
    model.compile("adam", loss=["binary_crossentropy", "mse"], loss_weights=[1.0, 0.1])
    rng = np.random.default_rng(16)
    x = rng.uniform(1, 3, size=(16, 5)).astype("float32")
    y = [rng.integers(0, 2, size=(16, 1)).astype("float32"), rng.normal(size=(16, 1)).astype("float32")]
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
