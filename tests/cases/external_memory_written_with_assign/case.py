# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class ExternalMemory(keras.layers.Layer):
    """Key-value memory: a controller writes, then everyone reads what was written."""

    def __init__(self, slots, width, **kwargs):
        super().__init__(**kwargs)
        self.slots, self.width = slots, width
        self.write_address = keras.layers.Dense(slots, activation="softmax", name="write_address")
        self.write_value = keras.layers.Dense(width, activation="tanh", name="write_value")
        self.read_address = keras.layers.Dense(slots, activation="softmax", name="read_address")

    def build(self, shape):
        self.content = self.add_weight(name="content", shape=(self.slots, self.width), trainable=False)
        for layer in (self.write_address, self.write_value, self.read_address):
            layer.build(shape)

    def write(self, x):
        where = self.write_address(x)
        added = tf.matmul(where, self.write_value(x), transpose_a=True) / tf.cast(tf.shape(x)[0], tf.float32)
        kept = 1.0 - tf.reduce_mean(where, axis=0)
        self.content.assign(self.content * kept[:, None] + added)

    def call(self, x):
        self.write(x)
        return tf.matmul(self.read_address(x), self.content)


class Tracer(keras.Model):
    def __init__(self):
        super().__init__(name="tracer")
        self.embed = keras.layers.Embedding(12, 6, name="questions")
        self.memory = ExternalMemory(5, 4, name="memory")
        self.correct = keras.layers.Dense(1, activation="sigmoid", name="correct")

    def call(self, question):
        h = self.embed(question)
        return self.correct(tf.concat([h, self.memory(h)], axis=-1))


def build():
    keras.utils.set_random_seed(91)
    model = Tracer()
    rng = np.random.default_rng(91)
    x = rng.integers(0, 12, size=(16,)).astype("int32")
    y = rng.integers(0, 2, size=(16, 1)).astype("float32")
    model(x[:2])
    model.compile("adam", loss="binary_crossentropy")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
