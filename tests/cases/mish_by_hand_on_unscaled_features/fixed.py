# mypy: ignore-errors
import keras
import numpy as np
from keras import layers, ops


@keras.saving.register_keras_serializable("demo")
def mish(x):
    return x * ops.tanh(ops.softplus(x))


def build():
    keras.utils.set_random_seed(64)
    table = keras.Input((5,), name="table")
    h = layers.Dense(12, activation=mish, name="h1")(table)
    h = layers.LayerNormalization(name="norm")(h)
    h = layers.Dense(6, activation=mish, name="h2")(h)
    out = layers.Dense(1, name="price")(h)
    model = keras.Model(table, out)
    model.compile("adam", loss="mse")
    rng = np.random.default_rng(64)
    x = rng.normal(size=(16, 5)).astype("float32")
    x[:, 0] = rng.uniform(100, 2000, size=16)  # square feet
    y = rng.normal(size=(16, 1)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
