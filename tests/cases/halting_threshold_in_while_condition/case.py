# mypy: ignore-errors
import tensorflow as tf


def ponder(state, step, halt, threshold, limit=6):
    """Adaptive computation: thinks on until the mean halting score passes the threshold."""

    def more(i, state, score):
        return tf.logical_and(i < limit, tf.reduce_mean(score) < tf.sigmoid(threshold))

    def think(i, state, score):
        state = tf.tanh(state @ step)
        return i + 1, state, score + 0.3 * tf.sigmoid(state @ halt)

    _, state, score = tf.while_loop(more, think, (0, state, tf.zeros([tf.shape(state)[0], 1])))
    return state, score


def build():
    tf.random.set_seed(55)
    step = tf.Variable(tf.random.normal([5, 5], stddev=0.5), name="step")
    halt = tf.Variable(tf.random.normal([5, 1], stddev=0.5), name="halt")
    threshold = tf.Variable(0.0, name="threshold")
    out = tf.Variable(tf.random.normal([5, 2], stddev=0.5), name="out")
    x, y = tf.random.normal([6, 5]), tf.random.normal([6, 2])

    def loss_fn(x, y):
        state, score = ponder(x, step, halt, threshold)
        return tf.reduce_mean(tf.square(state @ out - y)) + 0.01 * tf.reduce_mean(score)

    return {"kind": "function", "loss_fn": loss_fn, "variables": [step, halt, threshold, out], "args": (x, y)}
