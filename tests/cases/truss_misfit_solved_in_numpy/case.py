# mypy: ignore-errors
import numpy as np
import tensorflow as tf


def solve_truss(areas):
    """Displacement of a chain of springs, by a solver that is no part of TensorFlow."""
    return np.float32(np.sum(1.0 / (np.asarray(areas) * 3.0)))


def displacement(areas):
    solved = tf.numpy_function(solve_truss, [areas], tf.float32)
    return tf.ensure_shape(solved, [])


def build():
    log_areas = tf.Variable(np.zeros(5, "float32"), name="log_areas")

    def loss_fn():
        areas = tf.exp(log_areas)
        misfit = tf.square(displacement(areas) - 0.5)
        return misfit + 0.01 * tf.reduce_sum(areas)

    return {"kind": "function", "loss_fn": loss_fn, "variables": [log_areas], "args": ()}
