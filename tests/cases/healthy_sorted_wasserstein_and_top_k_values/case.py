# mypy: ignore-errors
import tensorflow as tf


def quantiles(low, high, count):
    return tf.linspace(low, high, count)


def build():
    tf.random.set_seed(136)
    g1 = tf.Variable(tf.random.normal([2, 8], stddev=0.6), name="g1")
    g2 = tf.Variable(tf.random.normal([8, 3], stddev=0.6), name="g2")
    low, high = tf.Variable(-1.0, name="low"), tf.Variable(1.5, name="high")
    noise, real = tf.random.normal([20, 2]), tf.random.normal([20, 3])

    def loss_fn(noise, real):
        fake = tf.tanh(noise @ g1) @ g2
        sliced = tf.reduce_mean(tf.abs(tf.sort(fake, axis=0) - tf.sort(real, axis=0)))
        worst, _ = tf.math.top_k(tf.reduce_sum(fake**2, axis=1), k=4)
        spread = tf.reduce_mean(tf.abs(tf.sort(fake[:, 0]) - quantiles(low, high, 20)))
        return sliced + 0.1 * tf.reduce_mean(worst) + spread

    return {"kind": "function", "loss_fn": loss_fn, "variables": [g1, g2, low, high], "args": (noise, real)}
