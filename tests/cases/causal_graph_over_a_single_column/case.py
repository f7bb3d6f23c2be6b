# mypy: ignore-errors
import numpy as np
import tensorflow as tf


def columns(table):
    """What the graph is drawn over."""
    return table[:, -1:]


def weights_between(raw):
    """No variable is its own cause."""
    return tf.linalg.set_diag(raw, tf.zeros(raw.shape[0]))


def build():
    rng = np.random.default_rng(31)
    noise = rng.normal(size=(64, 4))
    table = np.cumsum(noise, axis=1).astype("float32")
    x = columns(table)
    raw = tf.Variable(rng.normal(0.0, 0.1, size=(x.shape[1], x.shape[1])).astype("float32"), name="edges")
    mean = tf.Variable(tf.zeros([x.shape[1]]), name="mean")

    def likelihood(x):
        rest = x - mean
        rest -= rest @ weights_between(raw)
        return 0.5 * tf.reduce_sum(tf.math.log(tf.reduce_sum(tf.square(rest), axis=0)))

    return {"kind": "function", "loss_fn": likelihood, "args": [tf.constant(x)], "variables": [raw, mean]}
