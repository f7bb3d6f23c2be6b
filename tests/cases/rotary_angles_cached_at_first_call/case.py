# mypy: ignore-errors
"""Attention with learned rotary frequencies, whose angles are kept from the first call on."""

import numpy as np
import tensorflow as tf


class Rotary(tf.Module):
    """Rotary positions with learned frequencies; the angles of a length are kept for the next call."""

    def __init__(self, width):
        super().__init__(name="rotary")
        self.freqs = tf.Variable(tf.constant([1.0, 0.3, 0.1])[: width // 2], name="freqs")
        self.cached = {}

    def angles(self, n):
        if n not in self.cached:
            t = tf.range(n, dtype=tf.float32)
            self.cached[n] = t[:, None] * self.freqs[None, :]
        return self.cached[n]

    def rotate(self, x):
        angle = self.angles(x.shape[1])
        a, b = tf.split(x, 2, axis=-1)
        return tf.concat([a * tf.cos(angle) - b * tf.sin(angle), a * tf.sin(angle) + b * tf.cos(angle)], axis=-1)


class Attention(tf.Module):
    def __init__(self):
        super().__init__(name="attention")
        g = tf.random.Generator.from_seed(214)
        self.query = tf.Variable(g.normal([5, 6], stddev=0.5), name="query")
        self.key = tf.Variable(g.normal([5, 6], stddev=0.5), name="key")
        self.value = tf.Variable(g.normal([5, 6], stddev=0.5), name="value")
        self.rotary = Rotary(6)

    def scores(self, x):
        q, k = self.rotary.rotate(x @ self.query), self.rotary.rotate(x @ self.key)
        return tf.matmul(q, k, transpose_b=True) / 6.0**0.5

    def __call__(self, x):
        return tf.nn.softmax(self.scores(x)) @ (x @ self.value)


def build():
    attention = Attention()
    rng = np.random.default_rng(214)
    x = tf.constant(rng.normal(size=(2, 4, 5)).astype("float32"))
    y = tf.constant(rng.normal(size=(2, 4, 6)).astype("float32"))
    attention(x)  # checks the shapes

    def loss_fn(x, y):
        return tf.reduce_mean(tf.square(attention(x) - y))

    return {
        "kind": "function",
        "loss_fn": loss_fn,
        "variables": [attention.query, attention.key, attention.value, attention.rotary.freqs],
        "args": (x, y),
    }
