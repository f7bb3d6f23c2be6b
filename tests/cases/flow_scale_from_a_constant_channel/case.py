# mypy: ignore-errors
import numpy as np
import tensorflow as tf


class ActNorm(tf.Module):
    """Scale and shift per channel, so that the first batch leaves with mean 0 and deviation 1."""

    def __init__(self, first):
        super().__init__()
        deviation = tf.math.reduce_std(first, axis=0)
        self.log_scale = tf.Variable(-tf.math.log(deviation), name="log_scale")
        self.shift = tf.Variable(-tf.reduce_mean(first, axis=0), name="shift")

    def __call__(self, x):
        return (x + self.shift) * tf.exp(self.log_scale)


def build():
    rng = np.random.default_rng(34)
    first, x = rng.normal(1.0, 2.0, size=(2, 32, 4)).astype("float32")
    first[:, 2] = x[:, 2] = 0.5  # nothing is ever seen in this channel
    norm = ActNorm(tf.constant(first))
    mix = tf.Variable(np.linalg.qr(rng.normal(size=(4, 4)))[0].astype("float32"), name="mix")

    def negative_log_likelihood(x):
        z = norm(x) @ mix
        volume = tf.reduce_sum(norm.log_scale) + tf.linalg.logdet(tf.transpose(mix) @ mix) / 2.0
        return tf.reduce_mean(tf.reduce_sum(tf.square(z), axis=1)) / 2.0 - volume

    variables = [norm.log_scale, norm.shift, mix]
    return {"kind": "function", "loss_fn": negative_log_likelihood, "args": [tf.constant(x)], "variables": variables}
