# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Tagger(keras.Model):
    """Padded sequences: masks by comparison, accuracy by argmax and rounding, none of it on the way of a gradient."""

    def __init__(self):
        super().__init__(name="tagger")
        self.words = keras.layers.Embedding(25, 6, name="words")
        self.lstm = keras.layers.Bidirectional(keras.layers.LSTM(5, return_sequences=True, name="lstm"), name="bi")
        self.tags = keras.layers.Dense(4, name="tags")

    def call(self, tokens):
        keep = tf.not_equal(tokens, 0)
        return self.tags(self.lstm(self.words(tokens), mask=keep))

    def masked_mean(self, values, tokens):
        keep = tf.cast(tokens > 0, tf.float32)
        return tf.reduce_sum(values * keep) / tf.maximum(tf.reduce_sum(keep), 1.0)

    def train_step(self, data):
        tokens, tags = data
        with tf.GradientTape() as tape:
            logits = self(tokens, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tags, logits=logits)
            loss = self.masked_mean(losses, tokens)
            hits = tf.cast(tf.equal(tf.argmax(logits, axis=-1, output_type=tf.int32), tags), tf.float32)
            accuracy = tf.round(100.0 * self.masked_mean(hits, tokens))
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss, "accuracy": accuracy}


def build():
    keras.utils.set_random_seed(137)
    model = Tagger()
    rng = np.random.default_rng(137)
    x = rng.integers(1, 25, size=(8, 7)).astype("int32")
    for row, length in enumerate(rng.integers(3, 8, size=8)):
        x[row, length:] = 0
    y = rng.integers(0, 4, size=(8, 7)).astype("int32")
    model(x[:1])
    model.compile("adam")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
