# mypy: ignore-errors
import keras
import numpy as np


class TimeBins(keras.layers.Layer):
    """Which bin a time stamp falls into, and how far into it; the bin width should be learned."""

    def build(self, shape):
        self.width = self.add_weight(name="width", shape=(), initializer=keras.initializers.Constant(0.7))
        self.gain = self.add_weight(name="gain", shape=(4,), initializer="random_normal")

    def call(self, t):
        bins = t // self.width
        return bins * self.gain


def build():
    keras.utils.set_random_seed(12)
    stamp = keras.Input((1,), name="stamp")
    features = keras.Input((5,), name="features")
    coded = TimeBins(name="bins")(stamp)
    h = keras.layers.Concatenate(name="join")([features, coded])
    h = keras.layers.Dense(12, activation="relu", name="hidden")(h)
    model = keras.Model([stamp, features], keras.layers.Dense(1, name="demand")(h))
    model.compile(keras.optimizers.Adam(1e-3), loss=keras.losses.Huber())
    rng = np.random.default_rng(12)
    x = (rng.uniform(0, 6, size=(16, 1)).astype("float32"), rng.normal(size=(16, 5)).astype("float32"))
    y = rng.normal(size=(16, 1)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
