# mypy: ignore-errors
import math

import tensorflow as tf


def nearest_rotation(m):
    """Polar factor of a matrix, by SVD."""
    _, u, v = tf.linalg.svd(m)
    return tf.linalg.matmul(u, v, adjoint_b=True)


def build():
    tf.random.set_seed(27)
    raw = tf.Variable(2.0 * tf.eye(3), name="raw_rotation")
    scale = tf.Variable(tf.ones([3]), name="scale")
    shift = tf.Variable(tf.zeros([3]), name="shift")
    points = tf.random.normal([20, 3])
    angle = 0.7
    truth = tf.constant(
        [[math.cos(angle), -math.sin(angle), 0.0], [math.sin(angle), math.cos(angle), 0.0], [0.0, 0.0, 1.0]]
    )
    target = points @ truth + 0.5

    def register(points):
        return (points * scale) @ nearest_rotation(raw) + shift

    def loss_fn(points, target):
        return tf.reduce_mean(tf.reduce_sum(tf.square(register(points) - target), axis=1))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [raw, scale, shift], "args": (points, target)}
