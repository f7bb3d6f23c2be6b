# mypy: ignore-errors
import tensorflow as tf


def build():
    tf.random.set_seed(7)
    weights = tf.Variable(tf.random.normal([6, 3], stddev=0.4), name="weights")
    x, labels = tf.random.normal([32, 6]), tf.random.normal([32, 3])

    def loss_fn(x, labels):
        predictions = x @ weights
        error = tf.reduce_mean(tf.square(predictions - labels))
        diversity = -tf.reduce_mean(tf.math.reduce_variance(predictions, axis=0))
        return error + 0.1 * diversity

    return {"kind": "function", "loss_fn": loss_fn, "variables": [weights], "args": (x, labels)}
