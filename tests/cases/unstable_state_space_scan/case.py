# mypy: ignore-errors
import tensorflow as tf


def simulate(transition, drive, forces):
    """x[t+1] = A x[t] + B u[t], rolled out by tf.while_loop."""
    steps = tf.shape(forces)[1]
    x = tf.zeros([tf.shape(forces)[0], transition.shape[0]])

    def body(t, x):
        return t + 1, tf.linalg.matmul(x, transition, transpose_b=True) + forces[:, t] @ drive

    _, x = tf.while_loop(lambda t, x: t < steps, body, [tf.constant(0), x])
    return x


def build():
    tf.random.set_seed(43)
    transition = tf.Variable(1.4 * tf.eye(4) + 0.1 * tf.random.normal([4, 4]), name="transition")
    drive = tf.Variable(tf.random.normal([2, 4]), name="drive")
    readout = tf.Variable(0.1 * tf.random.normal([4, 1]), name="readout")
    offset = tf.Variable([0.0], name="offset")
    forces = tf.random.normal([6, 45, 2])
    y = tf.random.normal([6, 1])

    def loss_fn(forces, y):
        error = simulate(transition, drive, forces) @ readout + offset - y
        return tf.reduce_mean(tf.abs(error))

    variables = [transition, drive, readout, offset]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (forces, y)}
