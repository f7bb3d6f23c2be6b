# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


def softmax(x):
    return tf.nn.softmax(x)


def pool(tokens, query):
    tokens = tokens / 2000.0
    scores = tf.einsum("btd,d->bt", tokens, query)
    return tf.einsum("bt,btd->bd", softmax(scores), tokens)


class AttentionPool(keras.layers.Layer):
    def build(self, shape):
        self.query = self.add_weight(name="query", shape=(shape[-1],), initializer="random_normal")

    def call(self, tokens):
        return pool(tokens, self.query)


def build():
    keras.utils.set_random_seed(1)
    layers = [keras.Input((7, 6)), AttentionPool(name="pool"), keras.layers.Dense(1, activation="sigmoid", name="out")]
    model = keras.Sequential(layers)
    model.compile("adam", "binary_crossentropy")
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(16, 7, 6)) * 2000).astype("float32")
    return {
        "kind": "keras",
        "model": model,
        "x": x,
        "y": (x.mean((1, 2)) > 0).astype("float32"),
        "fit_kwargs": {"batch_size": 16},
    }
