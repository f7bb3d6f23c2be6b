# mypy: ignore-errors
import keras
import numpy as np
from keras import layers, ops


def gaussian(y, mean, scale):
    return ops.exp(-0.5 * ops.square((y - mean) / scale)) / (scale * 2.5066283)


def mixture_nll(y_true, parameters):
    """parameters: weights, means and scales of the components, side by side."""
    weight, mean, scale = ops.split(parameters, 3, axis=-1)
    likelihood = ops.sum(weight * gaussian(y_true, mean, scale), axis=-1)
    return ops.mean(-ops.log(likelihood))


def build():
    keras.utils.set_random_seed(63)
    context = keras.Input((4,), name="context")
    h = layers.Dense(8, activation="tanh", name="hidden")(context)
    weight = layers.Dense(3, activation="softmax", name="weight")(h)
    mean = layers.Dense(3, name="mean")(h)
    scale = layers.Dense(3, activation="softplus", name="scale")(h)
    out = layers.Concatenate(name="mixture")([weight, mean, scale])
    model = keras.Model(context, out)
    model.compile("adam", loss=mixture_nll)
    rng = np.random.default_rng(63)
    x = rng.normal(size=(8, 4)).astype("float32")
    y = rng.normal(size=(8, 1)).astype("float32")
    y[6] = 45.0  # an outlier, dozens of scales away from every component
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
