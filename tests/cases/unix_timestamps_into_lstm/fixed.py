# mypy: ignore-errors
import keras
import numpy as np


def features(rng, rows, steps):
    start = 1.6e9 + 60.0 * rng.integers(0, 1000, size=(rows, 1))
    time = start + 60.0 * np.arange(steps)
    value = rng.normal(size=(rows, steps))
    time = (time - time.mean()) / time.std()
    return np.stack([time, value], axis=-1).astype("float32")


def build():
    keras.utils.set_random_seed(13)
    series = keras.Input((6, 2), name="series")
    h = keras.layers.LSTM(5, name="memory")(series)
    h = keras.layers.Dense(4, activation="relu", bias_initializer="ones", name="dense")(h)
    out = keras.layers.Dense(1, name="forecast")(h)
    model = keras.Model(series, out)
    model.compile("adam", loss="huber")
    rng = np.random.default_rng(13)
    x = features(rng, 8, 6)
    y = rng.normal(size=(8, 1)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
