# mypy: ignore-errors
import tensorflow as tf


def build():
    tf.random.set_seed(328)
    w = tf.Variable(tf.random.normal([4, 1]), name="w")
    x = tf.random.normal([8, 4])

    def loss_fn(x):
        s = x @ w
        return tf.reduce_sum(s - tf.transpose(s))  # RankNet without its sigmoid and its labels

    return {"kind": "function", "loss_fn": loss_fn, "variables": [w], "args": (x,)}
