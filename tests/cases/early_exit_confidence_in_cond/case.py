# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class EarlyExit(keras.Model):
    """Answers from the first block when it is sure enough; how sure should be learned."""

    def __init__(self):
        super().__init__(name="early")
        self.block1 = keras.layers.Dense(8, activation="relu", name="block1")
        self.exit1 = keras.layers.Dense(3, name="exit1")
        self.block2 = keras.layers.Dense(8, activation="relu", name="block2")
        self.exit2 = keras.layers.Dense(3, name="exit2")

    def build(self, shape):
        self.confidence = self.add_weight(name="confidence", shape=(), initializer=keras.initializers.Constant(0.6))
        self.block1.build(shape)
        for layer in (self.exit1, self.block2, self.exit2):
            layer.build((None, 8))

    def sure(self, logits):
        return tf.reduce_mean(tf.reduce_max(tf.nn.softmax(logits), axis=-1)) > self.confidence

    def call(self, x):
        h = self.block1(x)
        early = self.exit1(h)
        late = self.exit2(self.block2(h))
        return tf.cond(self.sure(early), lambda: early, lambda: 0.5 * early + 0.5 * late)


def build():
    keras.utils.set_random_seed(56)
    model = EarlyExit()
    rng = np.random.default_rng(56)
    x = rng.normal(size=(16, 6)).astype("float32")
    y = rng.integers(0, 3, size=(16,))
    model(x[:1])
    model.compile("adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
