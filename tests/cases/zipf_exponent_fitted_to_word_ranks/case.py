# mypy: ignore-errors
import tensorflow as tf


def build():
    ranks = tf.constant([1.0, 1.0, 1.0, 2.0, 1.0, 3.0, 2.0, 7.0, 1.0, 4.0])
    exponent = tf.Variable(2.5, name="exponent")

    def negative_log_likelihood(ranks):
        log_normaliser = tf.math.log(tf.math.zeta(exponent, 1.0))
        return tf.reduce_mean(exponent * tf.math.log(ranks)) + log_normaliser

    return {"kind": "function", "loss_fn": negative_log_likelihood, "variables": [exponent], "args": (ranks,)}
