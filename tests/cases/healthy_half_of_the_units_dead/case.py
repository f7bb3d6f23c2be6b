# mypy: ignore-errors
import keras
import numpy as np


def build():
    keras.utils.set_random_seed(80)
    x_in = keras.Input((6,), name="x")
    spread = keras.initializers.RandomUniform(-6.0, 4.0, seed=3)
    h = keras.layers.Dense(40, activation="relu", bias_initializer=spread, name="sparse_code")(x_in)
    h = keras.layers.Dropout(0.3, seed=5, name="drop")(h)
    h = keras.layers.Dense(10, activation="relu", name="second")(h)
    out = keras.layers.Dense(3, activation="softmax", name="label")(h)
    model = keras.Model(x_in, out)
    model.compile("adam", loss=keras.losses.CategoricalCrossentropy(label_smoothing=0.1))
    rng = np.random.default_rng(80)
    x = rng.uniform(-1, 1, size=(16, 6)).astype("float32")
    y = np.eye(3, dtype="float32")[rng.integers(0, 3, size=(16,))]
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
