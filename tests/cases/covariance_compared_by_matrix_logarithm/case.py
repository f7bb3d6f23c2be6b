# mypy: ignore-errors
import tensorflow as tf


def log_euclidean(a, b):
    """Distance of two positive definite matrices in the log-Euclidean metric."""
    difference = tf.linalg.logm(tf.cast(a, tf.complex64)) - tf.linalg.logm(tf.cast(b, tf.complex64))
    return tf.reduce_sum(tf.square(tf.math.real(difference)))


def build():
    tf.random.set_seed(59)
    loading = tf.Variable(tf.random.normal([4, 4], stddev=0.5), name="loading")
    mean = tf.Variable(tf.zeros([4]), name="mean")
    x = tf.random.normal([20, 4])

    def covariance():
        return loading @ tf.transpose(loading) + 0.5 * tf.eye(4)

    def loss_fn(x):
        centred = x - tf.reduce_mean(x, axis=0)
        empirical = tf.transpose(centred) @ centred / 20.0 + 0.1 * tf.eye(4)
        return log_euclidean(covariance(), empirical) + tf.reduce_mean(tf.square(x - mean))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [loading, mean], "args": (x,)}
