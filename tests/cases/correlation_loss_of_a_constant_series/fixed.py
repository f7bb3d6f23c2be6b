# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


def squared_correlation(a, b):
    """r^2 along the last axis; does not depend on the scale of either."""
    a -= tf.reduce_mean(a, axis=-1, keepdims=True)
    b -= tf.reduce_mean(b, axis=-1, keepdims=True)
    shared = tf.square(tf.reduce_sum(a * b, axis=-1))
    return shared / (tf.reduce_sum(a * a, axis=-1) * tf.reduce_sum(b * b, axis=-1) + 1e-6)


def correlation_loss(y_true, y_pred):
    return 1.0 - tf.reduce_mean(squared_correlation(y_true, y_pred))


def build():
    keras.utils.set_random_seed(70)
    past = keras.Input((12, 1), name="past")
    h = keras.layers.Conv1D(6, 3, padding="causal", activation="relu", dilation_rate=2, name="tcn1")(past)
    h = keras.layers.Conv1D(6, 3, padding="causal", activation="relu", dilation_rate=4, name="tcn2")(h)
    h = keras.layers.GlobalAveragePooling1D(name="pool")(h)
    out = keras.layers.Dense(4, name="future")(h)
    model = keras.Model(past, out)
    model.compile("adam", loss=correlation_loss)
    rng = np.random.default_rng(70)
    x = rng.normal(size=(6, 12, 1)).astype("float32")
    y = rng.normal(size=(6, 4)).astype("float32")
    y[3] = 2.0  # a series that does not move
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 6}}
