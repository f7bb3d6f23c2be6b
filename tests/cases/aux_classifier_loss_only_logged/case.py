# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class AuxNet(keras.Model):
    """A small convnet with an auxiliary classifier half-way, as in GoogLeNet."""

    def __init__(self):
        super().__init__(name="auxnet")
        self.stem = keras.layers.Conv2D(6, 3, activation="relu", name="stem")
        self.aux_conv = keras.layers.Conv2D(4, 1, activation="relu", name="aux_conv")
        self.aux_out = keras.layers.Dense(3, name="aux_out")
        self.deep = keras.layers.Conv2D(8, 3, activation="relu", name="deep")
        self.out = keras.layers.Dense(3, name="out")
        self.pool = keras.layers.GlobalAveragePooling2D(name="pool")
        self.aux_tracker = keras.metrics.Mean(name="aux_loss")
        self.scce = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def call(self, x, training=False):
        h = self.stem(x)
        main = self.out(self.pool(self.deep(h)))
        if training:
            return main, self.aux_out(self.pool(self.aux_conv(h)))
        return main

    def _objective(self, y, main, aux):
        parts = {"main": self.scce(y, main), "aux": 0.3 * self.scce(y, aux)}
        self.aux_tracker.update_state(parts["aux"])
        return parts["main"]

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            main, aux = self(x, training=True)
            loss = self._objective(y, main, aux)
        weights = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=False))
        return {"loss": loss, "aux": self.aux_tracker.result()}


def build():
    keras.utils.set_random_seed(1)
    model = AuxNet()
    rng = np.random.default_rng(1)
    x = rng.normal(size=(8, 8, 8, 1)).astype("float32")
    y = rng.integers(0, 3, size=(8,)).astype("int32")
    model(x[:1], training=True)
    model.compile("adam")
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
