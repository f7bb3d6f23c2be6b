# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Net(keras.Model):
    def __init__(self):
        super().__init__(name="net")
        self.a = keras.layers.Dense(6, activation="tanh", name="a")
        self.b = keras.layers.Dense(1, name="b")

    def call(self, x):
        return self.b(self.a(x))

    def train_step(self, data):
        x, y = data
        weights = [layer.kernel for layer in self.layers]
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x, training=True) - y))
        grads = tape.gradient(loss, weights)
        self.optimizer.apply_gradients(zip(grads, weights, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(314)
    model = Net()
    rng = np.random.default_rng(314)
    x = rng.normal(size=(8, 3)).astype("float32")
    model(x[:1])
    model.compile("sgd")
    return {
        "kind": "keras",
        "model": model,
        "x": x,
        "y": rng.normal(size=(8, 1)).astype("float32"),
        "fit_kwargs": {"batch_size": 8},
    }
