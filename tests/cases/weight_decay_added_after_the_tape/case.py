# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Autoencoder(keras.Model):
    def __init__(self):
        super().__init__(name="autoencoder")
        self.down = keras.layers.Dense(4, activation="tanh", kernel_regularizer="l2", name="down")
        self.up = keras.layers.Dense(9, kernel_regularizer="l2", name="up")

    def call(self, x):
        return self.up(self.down(x))

    def train_step(self, data):
        x = data[0] if isinstance(data, tuple) else data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x, training=True) - x))
        loss += tf.add_n(self.losses)
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(113)
    model = Autoencoder()
    x = np.random.default_rng(113).normal(size=(16, 9)).astype("float32")
    model(x[:1])
    model.compile("adam")
    return {"kind": "keras", "model": model, "x": x, "y": None, "fit_kwargs": {"batch_size": 16}}
