# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


def ranks(column):
    order = column.argsort(kind="stable")
    out = np.empty(len(column), np.float32)
    out[order] = np.arange(len(column), dtype=np.float32)
    return out


def rank_correlation(targets):
    """Minus Spearman's rho, summed over the targets."""

    def loss(y_true, y_pred):
        total = 0.0
        for i in range(targets):
            a = tf.numpy_function(ranks, [y_true[:, i]], tf.float32)
            b = tf.numpy_function(ranks, [y_pred[:, i]], tf.float32)
            size = tf.cast(tf.shape(y_true)[0], tf.float32)
            total += 1.0 - 6.0 * tf.reduce_sum((a - b) ** 2) / (size**3 - size)
        return -total

    return loss


def build():
    keras.utils.set_random_seed(75)
    genes = keras.Input((20,), name="genes")
    h = keras.layers.BatchNormalization(name="standardise")(genes)
    h = keras.layers.Dense(16, activation="elu", name="hidden")(h)
    model = keras.Model(genes, keras.layers.Dense(2, name="traits")(h))
    model.compile(keras.optimizers.Adam(1e-3), loss=rank_correlation(2))
    rng = np.random.default_rng(75)
    x = rng.normal(size=(12, 20)).astype("float32")
    y = rng.normal(size=(12, 2)).astype("float32")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 12}}
