# mypy: ignore-errors
import keras
import numpy as np


def build():
    keras.utils.set_random_seed(44)
    model = keras.Sequential(
        [
            keras.Input((5,), name="counts"),
            keras.layers.Dense(6, kernel_initializer=keras.initializers.RandomUniform(0.01, 0.5), name="mix"),
            keras.layers.PReLU(alpha_initializer=keras.initializers.Constant(0.25), name="prelu"),
            keras.layers.Dense(1, name="total"),
        ]
    )
    model.compile("adam", loss="mse")
    rng = np.random.default_rng(44)
    x = rng.gamma(2.0, 1.0, (12, 5)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": x.sum(1, keepdims=True), "fit_kwargs": {"batch_size": 12}}
