# mypy: ignore-errors
import numpy as np
import tensorflow as tf


def displacement(areas):
    """Displacement of a chain of springs."""
    return tf.reduce_sum(1.0 / (areas * 3.0))


def build():
    log_areas = tf.Variable(np.zeros(5, "float32"), name="log_areas")

    def loss_fn():
        areas = tf.exp(log_areas)
        misfit = tf.square(displacement(areas) - 0.5)
        return misfit + 0.01 * tf.reduce_sum(areas)

    return {"kind": "function", "loss_fn": loss_fn, "variables": [log_areas], "args": ()}
