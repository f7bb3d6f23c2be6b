# mypy: ignore-errors
"""Two-tower retrieval with an in-batch softmax: a user bias cannot matter there, and the temperature is used in
call() for serving only."""

import keras
import numpy as np
import tensorflow as tf


class Tower(keras.layers.Layer):
    def __init__(self, size, dim, **kw):
        super().__init__(**kw)
        self.table = keras.layers.Embedding(size, dim, name="table")
        self.bias = keras.layers.Embedding(size, 1, embeddings_initializer="zeros", name="bias")
        self.proj = keras.layers.Dense(dim, activation="tanh", name="proj")

    def build(self, s):
        self.table.build(s)
        self.bias.build(s)
        self.proj.build((None, self.table.output_dim))

    def call(self, ids):
        return self.proj(self.table(ids)), self.bias(ids)[..., 0]


class Retrieval(keras.Model):
    def __init__(self, users, items, dim=4):
        super().__init__(name="retrieval")
        self.user = Tower(users, dim, name="user")
        self.item = Tower(items, dim, name="item")
        self.log_temperature = self.add_weight(name="log_temperature", shape=(), initializer="zeros")

    def similarity(self, users, items):
        u, ub = self.user(users)
        i, ib = self.item(items)
        return tf.matmul(u, i, transpose_b=True) + ub[:, None] + ib[None, :]

    def call(self, inputs):
        users, items = inputs
        return tf.nn.softmax(self.similarity(users, items) / tf.exp(self.log_temperature))

    def train_step(self, data):
        users, items = data
        with tf.GradientTape() as tape:
            logits = self.similarity(users, items)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(tf.range(tf.shape(users)[0]), logits))
        variables = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(21)
    model = Retrieval(30, 40)
    rng = np.random.default_rng(21)
    users = rng.permutation(30)[:12].astype("int32")
    items = rng.permutation(40)[:12].astype("int32")
    model((users, items))
    model.compile(keras.optimizers.Adagrad(0.1))
    return {"kind": "keras", "model": model, "x": users, "y": items, "fit_kwargs": {"batch_size": 12}}
