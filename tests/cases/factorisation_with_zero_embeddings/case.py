# mypy: ignore-errors
import tensorflow as tf


class Factors(tf.Module):
    """Biased matrix factorisation."""

    def __init__(self, users, items, rank):
        super().__init__(name="mf")
        self.user = tf.Variable(tf.zeros([users, rank]), name="user_factors")
        self.item = tf.Variable(tf.zeros([items, rank]), name="item_factors")
        self.user_bias = tf.Variable(tf.zeros([users]), name="user_bias")
        self.item_bias = tf.Variable(tf.zeros([items]), name="item_bias")

    def rating(self, u, i):
        p, q = tf.nn.embedding_lookup(self.user, u), tf.nn.embedding_lookup(self.item, i)
        bias = tf.gather(self.user_bias, u) + tf.gather(self.item_bias, i)
        return tf.einsum("nr,nr->n", p, q) + bias


def build():
    tf.random.set_seed(20)
    model = Factors(6, 9, 3)
    u = tf.random.uniform([24], 0, 6, dtype=tf.int32)
    i = tf.random.uniform([24], 0, 9, dtype=tf.int32)
    r = tf.random.uniform([24], 1.0, 5.0)

    def loss_fn(u, i, r):
        return tf.reduce_mean(tf.keras.losses.huber(r[:, None], model.rating(u, i)[:, None]))

    variables = [model.user, model.item, model.user_bias, model.item_bias]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (u, i, r)}
