# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Sampler(keras.Model):
    """Learns a distribution: its samples are to be as far from the data as from one another, on average."""

    def __init__(self):
        super().__init__(name="sampler")
        self.hidden = keras.layers.Dense(16, activation="tanh", name="hidden")
        self.out = keras.layers.Dense(1, name="out")

    def call(self, x):
        return self.out(self.hidden(x))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            samples = self(x, training=True)[:, 0]
            apart = samples[:, tf.newaxis]
            between = tf.reduce_mean(tf.abs(apart - y))
            within = tf.reduce_mean(tf.abs(apart - samples))
            loss = 2.0 * between - within
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(91)
    model = Sampler()
    rng = np.random.default_rng(91)
    x = rng.normal(size=(32, 5)).astype("float32")
    y = (x[:, 0] * 2.0 - x[:, 1]).astype("float32")
    model(x[:1])
    model.compile(keras.optimizers.Adam(1e-2))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
