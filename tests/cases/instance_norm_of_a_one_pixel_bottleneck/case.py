# mypy: ignore-errors
import keras
import numpy as np
from keras import layers


def down(x, width, name):
    h = layers.Conv2D(width, 3, strides=2, padding="same", use_bias=False, name=f"{name}_conv")(x)
    h = layers.GroupNormalization(groups=-1, name=f"{name}_norm")(h)
    return layers.LeakyReLU(name=f"{name}_act")(h)


def up(x, skip, width, name):
    h = layers.Conv2DTranspose(width, 4, strides=2, padding="same", name=f"{name}_conv")(x)
    return layers.Concatenate(name=f"{name}_cat")([h, skip])


def build():
    keras.utils.set_random_seed(25)
    image = keras.Input((8, 8, 1), name="image")
    d1 = down(image, 4, "d1")
    d2 = down(d1, 6, "d2")
    d3 = down(d2, 8, "d3")  # 1 x 1
    u = up(d3, d2, 6, "u1")
    u = up(u, d1, 4, "u2")
    out = layers.Conv2DTranspose(1, 4, strides=2, padding="same", activation="tanh", name="pixels")(u)
    model = keras.Model(image, out)
    model.compile("adam", loss="mae")
    rng = np.random.default_rng(25)
    x = rng.normal(size=(2, 8, 8, 1)).astype("float32")
    y = rng.uniform(-1, 1, size=(2, 8, 8, 1)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 2}}
