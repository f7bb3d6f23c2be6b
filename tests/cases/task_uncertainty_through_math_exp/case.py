# mypy: ignore-errors
import math

import tensorflow as tf


def build():
    tf.random.set_seed(30)
    slope = tf.Variable([0.3, -0.2], name="slope")
    log_variance = tf.Variable(0.4, name="log_variance")
    x = tf.random.normal([20, 2])
    y = 3.0 * x[:, 0] - x[:, 1]

    def loss_fn(x, y):
        error = tf.reduce_mean(tf.square(tf.linalg.matvec(x, slope) - y))
        return math.exp(-log_variance) * error + log_variance

    return {"kind": "function", "loss_fn": loss_fn, "variables": [slope, log_variance], "args": (x, y)}
