# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


@keras.saving.register_keras_serializable("demo")
class ClipGradient(keras.layers.Layer):
    """Identity whose gradient is clipped, between time blocks of a long sequence."""

    def __init__(self, limit=1e-3, **kw):
        super().__init__(**kw)
        self.limit = limit

    def call(self, x):
        @tf.custom_gradient
        def clip(x):
            return tf.identity(x), lambda dy: tf.clip_by_value(dy, -self.limit, self.limit)

        return clip(x)


def build():
    keras.utils.set_random_seed(75)
    series = keras.Input((12, 2), name="series")
    h = keras.layers.GRU(5, return_sequences=True, name="early")(series)
    h = ClipGradient(name="clip")(h)
    h = keras.layers.GRU(5, name="late")(h)
    out = keras.layers.Dense(1, name="next")(h)
    model = keras.Model(series, out)
    model.compile("adam", loss="mse")
    rng = np.random.default_rng(75)
    x = rng.normal(size=(8, 12, 2)).astype("float32")
    y = 3.0 * rng.normal(size=(8, 1)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
