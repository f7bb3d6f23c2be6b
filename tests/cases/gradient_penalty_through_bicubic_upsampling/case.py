# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Critic(keras.Model):
    """WGAN-GP critic that looks at a bicubically enlarged image."""

    def __init__(self):
        super().__init__(name="critic")
        self.coarse = keras.layers.Conv2D(3, 3, padding="same", activation="tanh", name="coarse")
        self.enlarge = keras.layers.UpSampling2D(2, interpolation="bicubic", name="enlarge")
        self.fine = keras.layers.Conv2D(4, 3, strides=2, activation="tanh", name="fine")
        self.flat = keras.layers.Flatten(name="flat")
        self.score = keras.layers.Dense(1, use_bias=False, name="score")

    def call(self, image):
        return self.score(self.flat(self.fine(self.enlarge(self.coarse(image)))))

    def penalty(self, image):
        with tf.GradientTape() as inner:
            inner.watch(image)
            score = self(image, training=True)
        slope = inner.gradient(score, image)
        return tf.reduce_mean(tf.square(tf.sqrt(tf.reduce_sum(slope**2, axis=[1, 2, 3]) + 1e-12) - 1.0))

    def train_step(self, data):
        fake, real = data
        with tf.GradientTape() as tape:
            wasserstein = tf.reduce_mean(self(fake, training=True)) - tf.reduce_mean(self(real, training=True))
            loss = wasserstein + 10.0 * self.penalty(0.3 * fake + 0.7 * real)
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(60)
    model = Critic()
    rng = np.random.default_rng(60)
    x = rng.normal(size=(4, 6, 6, 2)).astype("float32")
    y = rng.normal(size=(4, 6, 6, 2)).astype("float32")
    model(x[:1])
    model.compile(keras.optimizers.Adam(1e-4))
    return {"kind": "keras", "model": model, "x": x, "y": y, "fit_kwargs": {"batch_size": 4}}
