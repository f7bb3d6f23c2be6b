# mypy: ignore-errors
"""Recommender over padded click histories: mean over the mask, and a where() that hides the 0/0 of a new user."""

import keras
import numpy as np
import tensorflow as tf


class MaskedMean(keras.layers.Layer):
    def __init__(self, **kw):
        super().__init__(**kw)
        self.supports_masking = True

    def call(self, emb, mask=None):
        m = tf.cast(mask, emb.dtype)[..., None]
        pooled = tf.reduce_sum(emb * m, 1) / tf.reduce_sum(m, 1)
        return tf.where(tf.math.is_finite(pooled), pooled, tf.zeros_like(pooled))

    def compute_mask(self, inputs, mask=None):
        return None

    def compute_output_shape(self, s):
        return (s[0], s[2])


class UserTower(keras.layers.Layer):
    def __init__(self, items, dim, **kw):
        super().__init__(**kw)
        self.clicks = keras.layers.Embedding(items, dim, mask_zero=True, name="clicks")
        self.pool = MaskedMean(name="pool")
        self.out = keras.layers.Dense(dim, name="out")

    def build(self, s):
        self.clicks.build(s)
        self.out.build((None, self.clicks.output_dim))

    def call(self, ids):
        emb = self.clicks(ids)
        return self.out(self.pool(emb, mask=self.clicks.compute_mask(ids)))

    def compute_output_shape(self, s):
        return (s[0], self.out.units)


def build():
    keras.utils.set_random_seed(12)
    history = keras.Input((4,), dtype="int32", name="history")
    item = keras.Input((), dtype="int32", name="item")
    user = UserTower(12, 4, name="user")(history)
    emb = keras.layers.Embedding(12, 4, name="items")(item)
    score = keras.layers.Dot(axes=1, name="dot")([user, emb])
    model = keras.Model([history, item], score)
    model.compile("adam", loss=keras.losses.BinaryCrossentropy(from_logits=True))
    h = np.array([[1, 4, 5, 0], [2, 0, 0, 0], [0, 0, 0, 0], [7, 8, 9, 1]], "int32")
    i = np.array([3, 6, 2, 11], "int32")
    y = np.array([[1.0], [0.0], [1.0], [0.0]], "float32")
    return {"kind": "keras", "model": model, "x": [h, i], "y": y, "fit_kwargs": {"batch_size": 4}}
