# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class VAE(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.encoder = keras.Sequential([keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(6)])
        self.decoder = keras.Sequential([keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(8)])
        self.batches = 0

    def call(self, x):
        mean, _ = tf.split(self.encoder(x), 2, axis=1)
        return self.decoder(mean)

    def train_step(self, data):
        x = data[0] if isinstance(data, tuple) else data
        weight = min(1.0, self.batches / 50)
        self.batches += 1
        with tf.GradientTape() as tape:
            mean, log_variance = tf.split(self.encoder(x), 2, axis=1)
            noise = tf.random.normal(tf.shape(mean))
            reconstruction = tf.reduce_mean((self.decoder(mean + tf.exp(0.5 * log_variance) * noise) - x) ** 2)
            kl = -0.5 * tf.reduce_mean(1 + log_variance - mean**2 - tf.exp(log_variance))
            loss = reconstruction + weight * kl
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def build():
    """The weight of the KL term grows with a Python counter: the compiled step has the first weight for ever."""
    keras.utils.set_random_seed(23)
    model = VAE(name="vae")
    model.compile(optimizer=keras.optimizers.Adam(1e-3))
    x = np.random.default_rng(23).normal(size=(32, 8)).astype("float32")
    model(x[:2])
    return {"kind": "keras", "model": model, "x": x, "y": None, "fit_kwargs": {"batch_size": 16}}
