# mypy: ignore-errors
import tensorflow as tf


class Cell:
    """Elman cell; the state is None before the first step."""

    def __init__(self, n_in, n):
        self.kernel = tf.Variable(tf.random.normal([n_in, n], stddev=0.4), name="cell_kernel")
        self.recurrent = tf.Variable(tf.random.normal([n, n], stddev=0.4), name="cell_recurrent")
        self.bias = tf.Variable(tf.zeros([n]), name="cell_bias")

    def __call__(self, x, state):
        z = x @ self.kernel + self.bias
        if state is not None:
            z += state @ self.recurrent
        return tf.tanh(z)


def unroll(cell, sequence):
    state, outputs = None, []
    for x in tf.unstack(sequence, axis=1):
        state = cell(x, state)
        outputs.append(state)
    return tf.stack(outputs, axis=1)


def build():
    tf.random.set_seed(6)
    cell = Cell(4, 5)
    out = tf.Variable(tf.random.normal([5, 2], stddev=0.4), name="out")
    # (batch, features) was given a time axis in the wrong place: one step of all readings
    readings = tf.random.normal([8, 4])
    sequence = readings[:, tf.newaxis, :]
    y = tf.random.normal([8, 2])

    def loss_fn(sequence, y):
        return tf.reduce_mean(tf.square(unroll(cell, sequence)[:, -1] @ out - y))

    variables = [cell.kernel, cell.recurrent, cell.bias, out]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (sequence, y)}
