# mypy: ignore-errors
"""Optimal transport between two point clouds by Sinkhorn's scaling, in a `tf.while_loop`, with a tiny epsilon."""

import numpy as np
import tensorflow as tf


def cost(a, b):
    return tf.reduce_sum(tf.square(a[:, None, :] - b[None, :, :]), axis=-1)


def sinkhorn(c, epsilon, steps):
    n, m = c.shape
    k = tf.exp(-c / epsilon)
    mu, nu = tf.fill([n, 1], 1.0 / n), tf.fill([m, 1], 1.0 / m)

    def body(i, u, v):
        u = mu / tf.matmul(k, v)
        v = nu / tf.matmul(k, u, transpose_a=True)
        return i + 1, u, v

    _, u, v = tf.while_loop(
        lambda i, u, v: i < steps, body, (0, tf.ones([n, 1]), tf.ones([m, 1])), maximum_iterations=steps
    )
    return u * k * tf.transpose(v)


class Matcher(tf.Module):
    def __init__(self):
        super().__init__(name="matcher")
        g = tf.random.Generator.from_seed(212)
        self.project = tf.Variable(g.normal([3, 2]), name="project")
        self.shift = tf.Variable(tf.zeros([2]), name="shift")

    def embed(self, x):
        return x @ self.project + self.shift

    def distance(self, x, y):
        c = cost(self.embed(x), self.embed(y) + self.shift)
        return tf.reduce_sum(sinkhorn(c, epsilon=0.01, steps=8) * c)


def build():
    matcher = Matcher()
    rng = np.random.default_rng(212)
    x = tf.constant(rng.normal(size=(5, 3)).astype("float32"))
    y = tf.constant(rng.normal(loc=2.0, size=(4, 3)).astype("float32"))
    return {
        "kind": "function",
        "loss_fn": matcher.distance,
        "variables": [matcher.project, matcher.shift],
        "args": (x, y),
    }
