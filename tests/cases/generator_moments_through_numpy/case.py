# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


def moments(samples):
    """Mean, spread, skew and kurtosis, which is all the discriminator sees."""
    d = samples.numpy().T
    mean = d.mean()
    spread = d.std()
    z = (d - mean) / spread
    return np.array([[mean, spread, (z**3).mean(), (z**4).mean() - 3.0]], np.float32)


def build():
    tf.random.set_seed(78)
    g1 = tf.Variable(tf.random.normal([1, 6], stddev=0.5), name="g1")
    g2 = tf.Variable(tf.random.normal([6, 1], stddev=0.5), name="g2")
    d1 = tf.Variable(tf.random.normal([4, 6], stddev=0.5), name="d1")
    d2 = tf.Variable(tf.random.normal([6, 1], stddev=0.5), name="d2")
    noise = tf.random.uniform([50, 1])

    def generator(z):
        return tf.tanh(z @ g1) @ g2

    def discriminator(m):
        return tf.sigmoid(tf.tanh(m @ d1) @ d2)

    def loss_fn(noise):
        decision = discriminator(moments(generator(noise)))
        return tf.reduce_mean(keras.losses.binary_crossentropy(tf.ones([1, 1]), decision))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [g1, g2, d1, d2], "args": (noise,)}
