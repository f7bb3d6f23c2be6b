# mypy: ignore-errors
import math

import tensorflow as tf


def probit(z):
    return 0.5 * (1.0 + tf.math.erf(z / math.sqrt(2.0)))


def brier(y, p):
    return tf.reduce_mean(tf.math.squared_difference(y, p))


def design(raw):
    """Adds the constant column."""
    return tf.concat([tf.ones_like(raw[:, :1]), raw], axis=1)


def build():
    tf.random.set_seed(14)
    beta = tf.Variable([0.5, -0.9, 0.8], name="beta")
    income = tf.random.uniform([12, 1], 2e4, 9e4)
    age = tf.random.uniform([12, 1], 20.0, 70.0)
    calibration = tf.Variable(1.0, name="calibration")
    y = tf.cast(tf.random.uniform([12, 1]) > 0.5, tf.float32)

    def loss_fn(raw, y):
        p = probit(tf.linalg.matvec(design(raw), beta))[:, None]
        return brier(y, calibration * p + 0.1)

    return {
        "kind": "function",
        "loss_fn": loss_fn,
        "variables": [beta, calibration],
        "args": (tf.concat([-income, age], 1), y),
    }
