# mypy: ignore-errors
import tensorflow as tf


def build():
    """A quantised activation: the rounding is straight through by itself, the override beside it names `Floor`."""
    scale = tf.Variable(0.7, name="scale")
    x = tf.constant([0.3, 1.2, 2.6, 3.1])
    y = tf.constant([0.0, 1.0, 2.0, 4.0])

    def loss_fn():
        with tf.compat.v1.get_default_graph().gradient_override_map({"Floor": "Identity"}):
            scaled = x * scale
            levels = scaled + tf.stop_gradient(tf.round(scaled) - scaled)
        return tf.reduce_mean(tf.square(levels - y))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [scale], "args": ()}
