# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf
from keras import layers


class Sampling(layers.Layer):
    def __init__(self, **kw):
        super().__init__(**kw)
        self.seed = keras.random.SeedGenerator(3)

    def call(self, inputs):
        mean, log_var = inputs
        return mean + keras.ops.exp(0.5 * log_var) * keras.random.normal(keras.ops.shape(mean), seed=self.seed)


class BinaryVAE(keras.Model):
    def __init__(self, encoder, decoder):
        super().__init__(name="binary_vae")
        self.encoder, self.decoder = encoder, decoder
        self.total = keras.metrics.Mean(name="total")
        self.noise = keras.random.SeedGenerator(4)

    def call(self, x):
        return self.decoder(self.encoder(x)[2])

    def train_step(self, data):
        x = data[0] if isinstance(data, tuple) else data
        with tf.GradientTape() as tape:
            mean, log_var, z = self.encoder(x, training=True)
            probability = self.decoder(z, training=True)
            drawn = tf.cast(keras.random.uniform(tf.shape(x), seed=self.noise) < probability, tf.float32)
            reconstruction = tf.reduce_mean(tf.reduce_sum(tf.square(x - drawn), axis=(1, 2, 3)))
            kl = tf.reduce_mean(tf.reduce_sum(-0.5 * (1 + log_var - tf.square(mean) - tf.exp(log_var)), axis=1))
            loss = reconstruction + kl
        grads = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(grads, self.trainable_weights, strict=False))
        self.total.update_state(loss)
        return {"loss": self.total.result()}


def build():
    keras.utils.set_random_seed(5)
    image = keras.Input((12, 12, 1))
    h = layers.Conv2D(6, 3, strides=2, padding="same", activation="relu", name="e1")(image)
    h = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu", name="e2")(h)
    h = layers.Dense(10, activation="relu", name="e3")(layers.Flatten()(h))
    mean, log_var = layers.Dense(2, name="z_mean")(h), layers.Dense(2, name="z_log_var")(h)
    encoder = keras.Model(image, [mean, log_var, Sampling(name="sampling")([mean, log_var])], name="encoder")
    z = keras.Input((2,))
    h = layers.Reshape((3, 3, 8))(layers.Dense(72, activation="relu", name="d1")(z))
    h = layers.Conv2DTranspose(8, 3, strides=2, padding="same", activation="relu", name="d2")(h)
    h = layers.Conv2DTranspose(6, 3, strides=2, padding="same", activation="relu", name="d3")(h)
    decoder = keras.Model(
        z, layers.Conv2D(1, 3, padding="same", activation="sigmoid", name="pixels")(h), name="decoder"
    )
    model = BinaryVAE(encoder, decoder)
    x = (np.random.default_rng(5).uniform(size=(8, 12, 12, 1)) < 0.2).astype("float32")
    model(x[:1])
    model.compile(keras.optimizers.Adam())
    return {"kind": "keras", "model": model, "x": x, "y": None, "fit_kwargs": {"batch_size": 8}}
