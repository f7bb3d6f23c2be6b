# mypy: ignore-errors
import tensorflow as tf


def nearest(z, book):
    distance = tf.reduce_sum(z**2, -1, keepdims=True) - 2.0 * tf.matmul(z, book, transpose_b=True)
    return tf.gather(book, tf.argmin(distance + tf.reduce_sum(book**2, -1), axis=-1))


def quantise(z, book, beta=0.25):
    """Straight-through quantisation and its two losses."""
    q = tf.stop_gradient(nearest(z, book))
    codebook_loss = tf.reduce_mean(tf.square(q - tf.stop_gradient(z)))
    commitment_loss = tf.reduce_mean(tf.square(tf.stop_gradient(q) - z))
    return z + tf.stop_gradient(q - z), codebook_loss + beta * commitment_loss


def build():
    tf.random.set_seed(121)
    encode = tf.Variable(tf.random.normal([6, 3], stddev=0.5), name="encode")
    book = tf.Variable(tf.random.normal([8, 3], stddev=0.5), name="book")
    decode = tf.Variable(tf.random.normal([3, 6], stddev=0.5), name="decode")
    x = tf.random.normal([10, 6])

    def loss_fn(x):
        q, extra = quantise(x @ encode, book)
        return tf.reduce_mean(tf.square(tf.sinh(q) @ decode - x)) + extra

    return {"kind": "function", "loss_fn": loss_fn, "variables": [encode, book, decode], "args": (x,)}
