# mypy: ignore-errors
import keras
import numpy as np


class Memory(keras.layers.Layer):
    """Reads the one slot whose key is most like the query."""

    def __init__(self, slots, width, **kwargs):
        super().__init__(**kwargs)
        self.slots, self.width = slots, width

    def build(self, shape):
        self.query = self.add_weight(name="query", shape=(shape[-1], self.width))
        self.keys = self.add_weight(name="keys", shape=(self.slots, self.width), initializer="random_normal")
        self.content = self.add_weight(name="content", shape=(self.slots, self.width), initializer="random_normal")

    def address(self, x):
        likeness = keras.ops.matmul(keras.ops.matmul(x, self.query), keras.ops.transpose(self.keys))
        return keras.ops.one_hot(keras.ops.argmax(likeness, axis=-1), self.slots)

    def call(self, x):
        return keras.ops.matmul(self.address(x), self.content)


class Reader(keras.Model):
    def __init__(self):
        super().__init__(name="reader")
        self.encode = keras.layers.Dense(8, activation="tanh", name="encode")
        self.memory = Memory(6, 5, name="memory")
        self.answer = keras.layers.Dense(4, activation="softmax", name="answer")

    def call(self, x):
        h = self.encode(x)
        return self.answer(keras.ops.concatenate([h, self.memory(h)], axis=-1))


def build():
    keras.utils.set_random_seed(22)
    model = Reader()
    rng = np.random.default_rng(22)
    x = rng.normal(size=(16, 7)).astype("float32")
    y = keras.utils.to_categorical(rng.integers(0, 4, size=(16,)), 4)
    model(x[:1])
    model.compile("rmsprop", loss="categorical_crossentropy")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
