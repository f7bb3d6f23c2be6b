# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


def died_by(time, shape, rate):
    """Distribution function of a gamma distribution."""
    return tf.math.igamma(shape, tf.maximum(rate * time, 1e-6))


def build():
    keras.utils.set_random_seed(35)
    rng = np.random.default_rng(35)
    patient = tf.constant(rng.normal(size=(6, 3)).astype("float32"))
    time = tf.constant([0.0, 0.4, 1.0, 2.0, 0.7, 1.5])  # the first left on the day of admission
    weights = tf.Variable(rng.normal(0.0, 0.3, size=(3, 1)).astype("float32"), name="risk")
    level = tf.Variable(0.1, name="level")
    shape = tf.ones([6])

    def negative_log_survival(patient, time):
        rate = tf.nn.softplus(tf.squeeze(patient @ weights, -1) + level)
        return -tf.reduce_mean(tf.math.log(1.001 - died_by(time, shape, rate)))

    return {
        "kind": "function",
        "loss_fn": negative_log_survival,
        "args": [patient, time],
        "variables": [weights, level],
    }
