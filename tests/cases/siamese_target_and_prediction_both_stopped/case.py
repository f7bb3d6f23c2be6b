# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class SimSiam(keras.Model):
    """Two views, one encoder, a predictor, and a stop_gradient on the target."""

    def __init__(self):
        super().__init__(name="simsiam")
        self.encoder = keras.Sequential(
            [
                keras.Input((12,)),
                keras.layers.Dense(10, activation="relu", name="enc1"),
                keras.layers.Dense(6, name="enc2"),
            ],
            name="encoder",
        )
        self.predictor = keras.layers.Dense(6, name="predictor")

    def call(self, x):
        return self.predictor(self.encoder(x))

    def embed(self, view):
        return tf.stop_gradient(self.encoder(view, training=True))

    def distance(self, p, z):
        p, z = tf.math.l2_normalize(p, axis=1), tf.math.l2_normalize(z, axis=1)
        return -tf.reduce_mean(tf.reduce_sum(p * z, axis=1))

    def train_step(self, data):
        one, two = data
        with tf.GradientTape() as tape:
            z1, z2 = self.embed(one), self.embed(two)
            p1, p2 = self.predictor(z1), self.predictor(z2)
            loss = 0.5 * (self.distance(p1, z2) + self.distance(p2, z1))
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(119)
    model = SimSiam()
    rng = np.random.default_rng(119)
    x = rng.normal(size=(16, 12)).astype("float32")
    y = (x + 0.1 * rng.normal(size=(16, 12))).astype("float32")
    model(x[:1])
    model.compile(keras.optimizers.SGD(0.05, momentum=0.9))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 16}}
