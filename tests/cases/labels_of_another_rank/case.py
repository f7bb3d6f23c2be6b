# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Regressor(keras.Model):
    """Predicts one number, [batch, 1], and trains on labels of the shape [batch]."""

    def __init__(self):
        super().__init__(name="regressor")
        self.hidden = keras.layers.Dense(16, activation="tanh", name="hidden")
        self.out = keras.layers.Dense(1, name="out")

    def call(self, x):
        return self.out(self.hidden(x))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            prediction = self(x, training=True)
            loss = tf.reduce_mean(tf.square(y - prediction))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(91)
    model = Regressor()
    rng = np.random.default_rng(91)
    x = rng.normal(size=(32, 5)).astype("float32")
    y = (x[:, 0] * 2.0 - x[:, 1]).astype("float32")
    model(x[:1])
    model.compile(keras.optimizers.Adam(1e-2))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 12}}
