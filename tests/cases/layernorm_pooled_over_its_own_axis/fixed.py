# mypy: ignore-errors
import keras
import numpy as np
from keras import layers


def encoder_block(x, width, name):
    h = layers.Conv1D(width, 3, padding="same", activation="gelu", name=f"{name}_conv")(x)
    return layers.LayerNormalization(center=False, scale=False, name=f"{name}_norm")(h)


def build():
    keras.utils.set_random_seed(24)
    signal = keras.Input((10, 2), name="signal")
    h = encoder_block(signal, 6, "b1")
    h = encoder_block(h, 8, "b2")
    # (batch, time, channels) pooled as if it were (batch, channels, time)
    h = layers.GlobalAveragePooling1D(name="pool")(h)
    side = layers.Dense(4, activation="relu", name="side")(layers.Flatten(name="flat")(signal))
    h = layers.Concatenate(name="both")([h, side])
    out = layers.Dense(1, name="label")(h)
    model = keras.Model(signal, out)
    model.compile("adam", loss="mse")
    rng = np.random.default_rng(24)
    x = rng.normal(size=(8, 10, 2)).astype("float32")
    y = rng.normal(size=(8, 1)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
