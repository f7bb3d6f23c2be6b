# mypy: ignore-errors
import tensorflow as tf


def build():
    leak = tf.Variable([1.0, 0.3, 0.6], name="leak")
    present = tf.constant([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 1.0]])
    happened = tf.constant([1.0, 0.0, 0.6, 1.0])

    def loss_fn(present, happened):
        none_fired = tf.reduce_prod(1.0 - leak * present, axis=1)
        return tf.reduce_mean(tf.square((1.0 - none_fired) - happened))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [leak], "args": (present, happened)}
