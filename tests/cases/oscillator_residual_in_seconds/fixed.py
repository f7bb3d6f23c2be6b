# mypy: ignore-errors
import tensorflow as tf

OMEGA = 9.0  # radians in a second


def build():
    tf.random.set_seed(5)
    inner = tf.Variable(tf.random.normal([1, 16]), name="inner")
    bias = tf.Variable(tf.random.normal([16]), name="bias")
    outer = tf.Variable(tf.random.normal([16, 1], stddev=0.3), name="outer")
    time = tf.linspace([0.0], [1.0], 32)

    def position(time):
        return tf.tanh(time @ inner + bias) @ outer

    def loss_fn(time):
        with tf.GradientTape() as second:
            second.watch(time)
            with tf.GradientTape() as first:
                first.watch(time)
                u = position(time)
            velocity = first.gradient(u, time)
        acceleration = second.gradient(velocity, time)
        residual = tf.reduce_mean(tf.square(acceleration / OMEGA**2 + u))
        start = tf.reduce_mean(tf.square(position(time[:1]) - 1.0))
        return residual + start

    return {"kind": "function", "loss_fn": loss_fn, "variables": [inner, bias, outer], "args": (time,)}
