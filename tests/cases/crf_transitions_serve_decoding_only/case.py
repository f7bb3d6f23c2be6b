# mypy: ignore-errors
"""Slot tagger with a CRF layer whose transitions serve Viterbi decoding only; the loss is taken on the potentials."""

import keras
import numpy as np
import tensorflow as tf


class CRF(keras.layers.Layer):
    def __init__(self, units, **kw):
        super().__init__(**kw)
        self.units = units

    def build(self, s):
        self.kernel = self.add_weight(name="chain_kernel", shape=(s[-1], self.units), initializer="glorot_uniform")
        self.left = self.add_weight(name="left_boundary", shape=(self.units,), initializer="random_normal")
        self.transitions = self.add_weight(
            name="transitions", shape=(self.units, self.units), initializer="random_normal"
        )

    def viterbi(self, potentials):
        alpha = potentials[:, 0]
        pointers = []
        for t in range(1, potentials.shape[1]):
            scores = alpha[:, :, None] + self.transitions[None]
            pointers.append(tf.argmax(scores, 1, output_type=tf.int32))
            alpha = tf.reduce_max(scores, 1) + potentials[:, t]
        tag = tf.argmax(alpha, -1, output_type=tf.int32)
        path = [tag]
        for back in reversed(pointers):
            tag = tf.gather(back, tag, batch_dims=1)
            path.append(tag)
        return tf.stack(path[::-1], 1)

    def call(self, h):
        potentials = tf.einsum("btd,dk->btk", h, self.kernel)
        first = tf.concat([potentials[:, :1] + self.left, potentials[:, 1:]], 1)
        return self.viterbi(first), first


class Tagger(keras.Model):
    def __init__(self, vocabulary, tags):
        super().__init__(name="tagger")
        self.words = keras.layers.Embedding(vocabulary, 6, name="words")
        self.rnn = keras.layers.Bidirectional(keras.layers.GRU(4, return_sequences=True), name="bi")
        self.drop = keras.layers.Dropout(0.0)
        self.crf = CRF(tags, name="crf")

    def call(self, ids, training=False):
        return self.crf(self.drop(self.rnn(self.words(ids)), training=training))

    def compute_batch_loss(self, y, potentials):
        nll = tf.nn.sparse_softmax_cross_entropy_with_logits(y, potentials)
        return tf.reduce_mean(tf.reduce_sum(nll, -1))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            decoded, potentials = self(x, training=True)
            loss = self.compute_batch_loss(y, potentials)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables, strict=True))
        return {"loss": loss, "accuracy": tf.reduce_mean(tf.cast(tf.equal(decoded, y), tf.float32))}


def build():
    keras.utils.set_random_seed(3)
    model = Tagger(20, 4)
    rng = np.random.default_rng(3)
    x = rng.integers(0, 20, size=(8, 5)).astype("int32")
    y = rng.integers(0, 4, size=(8, 5)).astype("int32")
    model(x[:1])
    model.compile("adam")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
