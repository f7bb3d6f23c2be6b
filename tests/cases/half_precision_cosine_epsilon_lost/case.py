# mypy: ignore-errors
import tensorflow as tf


def unit(x):
    return x / (tf.reduce_max(tf.abs(x), axis=-1, keepdims=True) + 1e-8)


def build():
    tf.random.set_seed(25)
    table = tf.Variable(tf.concat([tf.zeros([1, 4]), tf.random.normal([5, 4])], axis=0), name="table")
    query = tf.Variable(tf.random.normal([4]), name="query")
    tokens = tf.constant([3, 1, 5, 0])
    wanted = tf.constant([0.2, -0.3, 0.5, 0.0])

    def loss_fn(tokens, wanted):
        rows = unit(tf.cast(tf.gather(table, tokens), tf.float16))
        scores = tf.linalg.matvec(tf.cast(rows, tf.float32), query)
        return tf.reduce_mean(tf.square(scores - wanted))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [table, query], "args": (tokens, wanted)}
