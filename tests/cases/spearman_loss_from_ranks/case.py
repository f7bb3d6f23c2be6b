# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


def rank(values):
    """0 for the smallest value, n-1 for the largest."""
    order = tf.argsort(values, axis=0)
    return tf.cast(tf.argsort(order, axis=0), tf.float32)


def spearman_loss(y_true, y_pred):
    """Minus the rank correlation, so that 'mse' need not be the measure of a ranking."""
    a, b = rank(tf.squeeze(y_true, 1)), rank(tf.squeeze(y_pred, 1))
    a, b = a - tf.reduce_mean(a), b - tf.reduce_mean(b)
    return -tf.reduce_sum(a * b) / (tf.norm(a) * tf.norm(b))


def build():
    keras.utils.set_random_seed(19)
    text = keras.Input((6,), dtype="int32", name="tokens")
    h = keras.layers.Embedding(30, 8, name="words")(text)
    h = keras.layers.Bidirectional(keras.layers.LSTM(5, name="lstm"), name="bi")(h)
    h = keras.layers.Dropout(0.1, name="drop")(h)
    model = keras.Model(text, keras.layers.Dense(1, name="relevance")(h))
    model.compile("adam", loss=spearman_loss)
    rng = np.random.default_rng(19)
    x = rng.integers(0, 30, size=(12, 6)).astype("int32")
    y = rng.normal(size=(12, 1)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 12}}
