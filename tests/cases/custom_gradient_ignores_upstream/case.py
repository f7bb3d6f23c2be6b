# mypy: ignore-errors
import tensorflow as tf


@tf.custom_gradient
def log1p_exp(x):
    """Stable softplus with the derivative written out."""
    e = tf.exp(-tf.abs(x))
    value = tf.maximum(x, 0.0) + tf.math.log1p(e)

    def grad(upstream):
        return tf.sigmoid(x)

    return value, grad


def negative_log_likelihood(labels, logits):
    return tf.reduce_mean(log1p_exp(logits) - labels * logits, axis=0)


def build():
    tf.random.set_seed(71)
    kernel = tf.Variable(tf.random.normal([5, 8], stddev=0.4), name="kernel")
    bias = tf.Variable(tf.zeros([8]), name="bias")
    out = tf.Variable(tf.random.normal([8, 1], stddev=0.4), name="out")
    x = tf.random.normal([32, 5])
    y = tf.cast(tf.random.uniform([32, 1]) > 0.7, tf.float32)

    def loss_fn(x, y):
        logits = tf.nn.tanh(x @ kernel + bias) @ out
        return 10.0 * tf.squeeze(negative_log_likelihood(y, logits))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [kernel, bias, out], "args": (x, y)}
