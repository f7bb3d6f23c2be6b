# mypy: ignore-errors
import numpy as np
import tensorflow as tf


def distances(points):
    """Euclidean distances of all pairs."""
    square = tf.reduce_sum(tf.square(points), axis=1)
    gram = tf.matmul(points, points, transpose_b=True)
    return np.sqrt(np.maximum(square[:, None] - 2.0 * gram + square[None], 1e-9))


def stress(target, points):
    """How badly the map distorts the distances."""
    return tf.reduce_mean(tf.square(distances(points) - target))


def build():
    tf.random.set_seed(72)
    project = tf.Variable(tf.random.normal([6, 2], stddev=0.5), name="project")
    decode = tf.Variable(tf.random.normal([2, 6], stddev=0.5), name="decode")
    bend = tf.Variable(tf.zeros([6]), name="bend")
    x = tf.random.normal([9, 6])
    target = tf.norm(x[:, None] - x[None], axis=-1)

    def loss_fn(x, target):
        places = tf.stop_gradient(x) @ project
        rebuilt = tf.tanh(tf.random.stateless_normal([9, 2], [1, 2]) @ decode) + bend
        return stress(target, places) + 0.1 * tf.reduce_mean(tf.square(rebuilt - x))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [project, decode, bend], "args": (x, target)}
