# mypy: ignore-errors
import tensorflow as tf


def build():
    tf.random.set_seed(310)
    prior = tf.Variable(tf.random.normal([3]), name="prior_logits")
    w = tf.Variable(tf.random.normal([4, 3]), name="w")
    x = tf.random.normal([10, 4])
    y = tf.constant([0, 1, 2, 0, 1, 2, 0, 1, 2, 0])
    log_prior = tf.nn.log_softmax(prior)  # class prior, learned together with w

    def loss_fn(x, y):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x @ w + log_prior))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [prior, w], "args": (x, y)}
