# mypy: ignore-errors
import keras
import numpy as np


def build():
    keras.utils.set_random_seed(6)
    faces = keras.Input((8,))
    trunk = keras.layers.Dense(16, name="trunk")(faces)
    heads = [keras.layers.Dense(1, name=name)(trunk) for name in ("age", "gender")]
    model = keras.Model(faces, heads)
    model.compile("sgd", ["mse", "mse"])
    x = np.random.default_rng(6).normal(size=(64, 8)).astype("float32")
    wanted = x[:, :1] * 3.0
    return {"kind": "keras", "model": model, "x": x, "y": [wanted, -wanted]}
