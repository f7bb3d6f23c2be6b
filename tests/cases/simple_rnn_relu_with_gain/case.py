# mypy: ignore-errors
import keras
import numpy as np


def build():
    keras.utils.set_random_seed(44)
    clicks = keras.Input((50, 3), name="clicks")
    h = keras.layers.Dense(6, activation="relu", name="embed")(clicks)
    gain = keras.initializers.Identity(gain=1.5)
    h = keras.layers.SimpleRNN(6, activation="relu", recurrent_initializer=gain, name="rnn")(h)
    out = keras.layers.Dense(1, name="score")(h)
    model = keras.Model(clicks, out)
    model.compile(keras.optimizers.Adam(clipnorm=1.0), loss="mae")
    rng = np.random.default_rng(44)
    x = rng.uniform(0, 1, size=(5, 50, 3)).astype("float32")
    y = rng.normal(size=(5, 1)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 5}}
