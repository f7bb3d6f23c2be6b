# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Probe(keras.Model):
    """Two phases: first the new head alone, then everything."""

    def __init__(self):
        super().__init__(name="probe")
        self.backbone = keras.layers.Dense(10, activation="relu", name="backbone")
        self.head = keras.layers.Dense(3, name="head")
        self.phase = "head"

    def call(self, x):
        return self.head(self.backbone(x))

    def weights_of_phase(self):
        return self.head.trainable_variables if self.phase == "head" else self.trainable_variables

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            entropy = keras.losses.sparse_categorical_crossentropy(y, self(x, training=True), from_logits=True)
            loss = tf.reduce_mean(entropy)
        weights = self.weights_of_phase()
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(142)
    model = Probe()
    rng = np.random.default_rng(142)
    x = rng.normal(size=(16, 6)).astype("float32")
    y = rng.integers(0, 3, size=(16,))
    model(x[:1])
    model.compile(keras.optimizers.SGD(0.1))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
