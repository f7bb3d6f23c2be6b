# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Forecaster(keras.Model):
    def __init__(self):
        super().__init__(name="forecaster")
        self.memory = keras.layers.GRU(8, name="memory")
        self.price = keras.layers.Dense(1, name="price")
        self.volume = keras.layers.Dense(1, activation="softplus", name="volume")

    def call(self, history):
        state = self.memory(history)
        return self.price(state), self.volume(state)

    def price_error(self, quoted, price):
        return tf.reduce_mean(tf.abs(quoted - price))

    def train_step(self, data):
        history, (quoted, traded) = data
        with tf.GradientTape() as tape:
            price, volume = self(history, training=True)
            loss = self.price_error(quoted, price) + 0.1 * tf.reduce_mean(tf.square(volume - traded))
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(14)
    model = Forecaster()
    rng = np.random.default_rng(14)
    x = rng.normal(size=(8, 6, 3)).astype("float32")
    y = (rng.uniform(1, 9, size=(8, 1)).astype("float32"), rng.uniform(size=(8, 1)).astype("float32"))
    model(x[:1])
    model.compile(keras.optimizers.Adam(1e-3))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
