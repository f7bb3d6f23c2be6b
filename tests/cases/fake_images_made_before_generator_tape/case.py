# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class GAN(keras.Model):
    def __init__(self):
        super().__init__(name="gan")
        self.generator = keras.Sequential(
            [keras.Input((3,)), keras.layers.Dense(8, activation="relu", name="g1"), keras.layers.Dense(5, name="g2")],
            name="generator",
        )
        self.discriminator = keras.Sequential(
            [
                keras.Input((5,)),
                keras.layers.Dense(8, activation="leaky_relu", name="d1"),
                keras.layers.Dense(1, name="d2"),
            ],
            name="discriminator",
        )

    def compile(self, d_optimizer, g_optimizer):
        super().compile()
        self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer
        self.bce = keras.losses.BinaryCrossentropy(from_logits=True)

    def call(self, z):
        return self.discriminator(self.generator(z))

    def train_step(self, data):
        z, real = data
        fake = self.generator(z, training=True)
        with tf.GradientTape() as tape:
            on_real, on_fake = self.discriminator(real), self.discriminator(fake)
            d_loss = self.bce(tf.ones_like(on_real), on_real) + self.bce(tf.zeros_like(on_fake), on_fake)
        weights = self.discriminator.trainable_variables
        self.d_optimizer.apply_gradients(zip(tape.gradient(d_loss, weights), weights, strict=True))
        with tf.GradientTape() as tape:
            verdict = self.discriminator(fake, training=True)
            g_loss = self.bce(tf.ones_like(verdict), verdict)
        weights = self.generator.trainable_variables
        self.g_optimizer.apply_gradients(zip(tape.gradient(g_loss, weights), weights, strict=True))
        return {"d": d_loss, "g": g_loss}


def build():
    keras.utils.set_random_seed(111)
    model = GAN()
    rng = np.random.default_rng(111)
    x = rng.normal(size=(8, 3)).astype("float32")
    y = rng.normal(size=(8, 5)).astype("float32")
    model(x[:1])
    model.compile(keras.optimizers.Adam(1e-3), keras.optimizers.Adam(1e-3))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 8}}
