# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf


class Critic(keras.Model):
    def __init__(self):
        super().__init__(name="critic")
        self.c1 = keras.layers.Dense(8, activation="relu", name="c1", kernel_initializer="random_uniform")
        self.c2 = keras.layers.Dense(8, activation="relu", name="c2")
        self.score = keras.layers.Dense(1, use_bias=False, name="score")

    def call(self, x):
        return self.score(self.c2(self.c1(x)))

    def penalty(self, real, fake):
        weight = tf.random.uniform([tf.shape(real)[0], 1])
        between = weight * real + (1.0 - weight) * fake
        with tf.GradientTape() as inner:
            inner.watch(between)
            scores = self(between, training=True)
        slopes = inner.gradient(scores, between)
        length = tf.sqrt(1e-8 + tf.reduce_sum(tf.square(slopes), axis=1))
        return tf.reduce_mean(tf.square(length - 1.0))

    def train_step(self, data):
        real, fake = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(self(fake)) - tf.reduce_mean(self(real)) + 10.0 * self.penalty(real, fake)
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply(gradients, self.trainable_weights)
        return {"loss": loss}


def build():
    keras.utils.set_random_seed(49)
    critic = Critic()
    rng = np.random.default_rng(49)
    real = rng.uniform(0, 1, size=(8, 5)).astype("float32")
    fake = rng.uniform(0, 1, size=(8, 5)).astype("float32")
    real[2] = fake[2] = 0.0  # padding row: no unit of c1 is active at the origin
    critic(real[:1])
    critic.compile("rmsprop")
    return {"kind": "keras", "model": critic, "x": real, "y": fake, "fit_kwargs": {"batch_size": 8}}
