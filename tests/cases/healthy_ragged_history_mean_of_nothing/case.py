# mypy: ignore-errors
"""Recommender over ragged click histories; the mean of an empty history is 0/0, but no table row hangs on it."""

import numpy as np
import tensorflow as tf


class Tower(tf.Module):
    def __init__(self, items, dim):
        super().__init__(name="tower")
        rng = np.random.default_rng(12)
        self.history = tf.Variable(rng.normal(size=(items, dim)).astype("float32") * 0.3, name="history_table")
        self.item = tf.Variable(rng.normal(size=(items, dim)).astype("float32") * 0.3, name="item_table")
        self.mix = tf.Variable(rng.normal(size=(dim, dim)).astype("float32") * 0.4, name="mix")
        self.decay = tf.Variable(0.1, name="decay")

    def user(self, clicks):
        emb = tf.ragged.map_flat_values(tf.gather, self.history, clicks)
        age = tf.ragged.range(clicks.row_lengths())
        weight = tf.ragged.map_flat_values(lambda a: tf.exp(-self.decay * tf.cast(a, tf.float32)), age)
        total = tf.reduce_sum(emb * tf.expand_dims(weight, -1), axis=1)
        norm = tf.reduce_sum(weight, axis=1)
        pooled = total / norm[:, None]
        return tf.where(tf.math.is_nan(pooled), tf.zeros_like(pooled), pooled)

    def score(self, clicks, item):
        return tf.reduce_sum((self.user(clicks) @ self.mix) * tf.gather(self.item, item), -1)


def bpr(pos, neg):
    return tf.reduce_mean(tf.nn.softplus(neg - pos))


def build():
    tf.random.set_seed(12)
    tower = Tower(12, 4)
    clicks = tf.ragged.constant([[1, 4, 5], [2], [], [7, 8, 9, 1]], dtype=tf.int32)
    pos, neg = tf.constant([3, 6, 2, 11]), tf.constant([5, 1, 8, 4])

    def loss_fn(clicks, pos, neg):
        return bpr(tower.score(clicks, pos), tower.score(clicks, neg))

    return {
        "kind": "function",
        "loss_fn": loss_fn,
        "variables": [tower.history, tower.item, tower.mix, tower.decay],
        "args": (clicks, pos, neg),
    }
