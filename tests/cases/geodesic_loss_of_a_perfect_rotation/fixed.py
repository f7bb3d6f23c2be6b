# mypy: ignore-errors
import tensorflow as tf


def rotation(axis_angle):
    """Rodrigues' formula; safe at angle zero."""
    angle = tf.sqrt(tf.reduce_sum(tf.square(axis_angle), axis=-1, keepdims=True) + 1e-12)
    x, y, z = tf.unstack(axis_angle / angle, axis=-1)
    zero = tf.zeros_like(x)
    cross = tf.reshape(tf.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1), [-1, 3, 3])
    s, c = tf.sin(angle)[..., None], tf.cos(angle)[..., None]
    return tf.eye(3) + s * cross + (1.0 - c) * (cross @ cross)


def geodesic(a, b):
    cosine = 0.5 * (tf.linalg.trace(tf.matmul(a, b, transpose_b=True)) - 1.0)
    return tf.acos(tf.clip_by_value(cosine, -1.0 + 1e-6, 1.0 - 1e-6))


def build():
    tf.random.set_seed(67)
    kernel = tf.Variable(tf.random.normal([5, 3], stddev=0.4), name="kernel")
    bias = tf.Variable(tf.zeros([3]), name="bias")
    x = tf.concat([tf.random.normal([7, 5]), tf.zeros([1, 5])], axis=0)
    target = rotation(tf.concat([tf.random.normal([7, 3]), tf.zeros([1, 3])], axis=0))

    def loss_fn(x, target):
        return tf.reduce_mean(geodesic(rotation(x @ kernel + bias), target))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [kernel, bias], "args": (x, target)}
