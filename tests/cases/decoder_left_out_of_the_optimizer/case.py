# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class VAE(keras.Model):
    def __init__(self):
        super().__init__(name="vae")
        self.encoder = keras.Sequential(
            [keras.Input((10,)), keras.layers.Dense(8, activation="relu", name="e1"), keras.layers.Dense(6, name="e2")],
            name="encoder",
        )
        self.decoder = keras.Sequential(
            [keras.Input((3,)), keras.layers.Dense(8, activation="relu", name="x1"), keras.layers.Dense(10, name="x2")],
            name="decoder",
        )

    def call(self, x):
        mean, log_variance = tf.split(self.encoder(x), 2, axis=-1)
        z = mean + tf.exp(0.5 * log_variance) * tf.random.stateless_normal(tf.shape(mean), [3, 1])
        return self.decoder(z), mean, log_variance

    def elbo(self, x):
        decoded, mean, log_variance = self(x, training=True)
        kl = -0.5 * tf.reduce_sum(1.0 + log_variance - mean**2 - tf.exp(log_variance), axis=1)
        return tf.reduce_mean(tf.reduce_sum(tf.square(decoded - x), axis=1) + kl)

    def train_step(self, data):
        x = data[0] if isinstance(data, tuple) else data
        with tf.GradientTape() as tape:
            loss = self.elbo(x)
        weights = self.encoder.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(117)
    model = VAE()
    x = np.random.default_rng(117).normal(size=(16, 10)).astype("float32")
    model(x[:1])
    model.compile("adam")
    return {"kind": "keras", "model": model, "x": x, "y": None, "fit_kwargs": {"batch_size": 16}}
