# mypy: ignore-errors
import keras
import numpy as np
from keras import layers


def zero_conv(filters, name):
    return layers.Conv2D(filters, 1, kernel_initializer="zeros", bias_initializer="zeros", name=name)


def control_branch(hint, width):
    """Control hint -> residual; starts as exactly nothing, like ControlNet's."""
    h = layers.Conv2D(width, 3, padding="same", activation="silu", name="hint_conv")(hint)
    h = zero_conv(width, "zero_in")(h)
    h = layers.Activation("silu", name="hint_act")(h)
    return zero_conv(width, "zero_out")(h)


def build():
    keras.utils.set_random_seed(19)
    image = keras.Input((8, 8, 1), name="image")
    hint = keras.Input((8, 8, 2), name="hint")
    base = layers.Conv2D(6, 3, padding="same", activation="silu", name="base")
    base.trainable = False
    h = layers.Add(name="inject")([base(image), control_branch(hint, 6)])
    out = layers.Conv2D(1, 3, padding="same", name="denoised")(h)
    model = keras.Model([image, hint], out)
    model.compile("adamw", loss="mse")
    rng = np.random.default_rng(19)
    x = [rng.normal(size=(4, 8, 8, c)).astype("float32") for c in (1, 2)]
    y = rng.normal(size=(4, 8, 8, 1)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 4}}
