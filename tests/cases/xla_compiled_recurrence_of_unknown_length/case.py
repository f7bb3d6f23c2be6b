# mypy: ignore-errors
import tensorflow as tf


@tf.function(jit_compile=True)
def unroll(x, weights, steps):
    """Hidden state after `steps` steps."""
    _, h = tf.while_loop(lambda i, h: i < steps, lambda i, h: (i + 1, tf.tanh(h @ weights + x)), (0, tf.zeros_like(x)))
    return h


def build():
    tf.random.set_seed(123)
    recurrent = tf.Variable(tf.random.normal([5, 5], stddev=0.4), name="recurrent")
    head = tf.Variable(tf.random.normal([5, 2], stddev=0.4), name="head")
    offset = tf.Variable(tf.zeros([2]), name="offset")
    x, y = tf.random.normal([6, 5]), tf.random.normal([6, 2])

    def loss_fn(x, y, steps):
        return tf.reduce_mean(tf.square(unroll(x, recurrent, steps) @ head + offset - y))

    args = (x, y, tf.constant(4))
    return {"kind": "function", "loss_fn": loss_fn, "variables": [recurrent, head, offset], "args": args}
