# mypy: ignore-errors
import keras
import tensorflow as tf


def mass_per_word(tokens, attention, words):
    """How much attention each word of the vocabulary receives in each text."""
    return tf.math.bincount(tokens, weights=attention, minlength=words, maxlength=words, axis=-1)


def build():
    tf.random.set_seed(57)
    embed = tf.Variable(tf.random.normal([12, 6], stddev=0.5), name="embed")
    focus = tf.Variable(tf.random.normal([6, 1], stddev=0.5), name="focus")
    copy_bias = tf.Variable(tf.zeros([12]), name="copy_bias")
    tokens, answer = tf.random.uniform([5, 7], maxval=12, dtype=tf.int32), tf.constant([1, 4, 2, 9, 0])

    def pointer(tokens):
        """Copy distribution of a pointer network."""
        attention = tf.nn.softmax(tf.squeeze(tf.gather(embed, tokens) @ focus, -1))
        return mass_per_word(tokens, attention, 12)

    def loss_fn(tokens, answer):
        scores = pointer(tokens) + tf.nn.softplus(copy_bias)
        scores = scores / tf.reduce_sum(scores, axis=-1, keepdims=True)
        return tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(answer, scores))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [embed, focus, copy_bias], "args": (tokens, answer)}
