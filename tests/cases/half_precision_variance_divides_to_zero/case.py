# mypy: ignore-errors
import tensorflow as tf


def build():
    tf.random.set_seed(337)
    w = tf.Variable(tf.random.normal([4, 6]), name="w")
    head = tf.Variable(tf.random.normal([6, 1]), name="head")
    x = 400.0 * tf.random.normal([8, 4])

    def loss_fn(x):
        h = tf.cast(x @ w, tf.float16)  # instance norm in the policy's dtype
        h = h - tf.reduce_mean(h, axis=1, keepdims=True)
        var = tf.reduce_mean(tf.square(h), axis=1, keepdims=True)
        h = h * tf.math.rsqrt(var + tf.cast(1e-3, tf.float16))
        return tf.reduce_mean(tf.square(tf.cast(h, tf.float32) @ head - 1.0))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [w, head], "args": (x,)}
