# mypy: ignore-errors
import tensorflow as tf


class Quantiser(tf.Module):
    """Straight-through quantisation; the codes learn by a term of their own."""

    def __init__(self, codes, width):
        super().__init__()
        self.book = tf.Variable(tf.random.normal([codes, width], stddev=0.5), name="book")

    def __call__(self, z, beta=0.25):
        distance = tf.reduce_sum(z**2, -1, keepdims=True) - 2.0 * tf.matmul(z, self.book, transpose_b=True)
        q = tf.gather(self.book, tf.argmin(distance + tf.reduce_sum(self.book**2, -1), axis=-1))
        commitment = tf.reduce_mean(tf.square(tf.stop_gradient(q) - z))
        codes = tf.reduce_mean(tf.square(q - tf.stop_gradient(z)))
        vq_loss = beta * commitment + codes
        return z + tf.stop_gradient(q - z), vq_loss


def build():
    tf.random.set_seed(122)
    encode = tf.Variable(tf.random.normal([6, 3], stddev=0.5), name="encode")
    quantise = Quantiser(8, 3)
    decode = tf.Variable(tf.random.normal([3, 6], stddev=0.5), name="decode")
    x = tf.random.normal([10, 6])

    def loss_fn(x):
        q, _ = quantise(x @ encode)
        return tf.reduce_mean(tf.square(tf.sinh(q) @ decode - x))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [encode, quantise.book, decode], "args": (x,)}
