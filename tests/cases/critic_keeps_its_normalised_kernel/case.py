# mypy: ignore-errors
"""Critic with home-made spectral normalisation, ported from a TF1 class."""

import keras
import numpy as np
import tensorflow as tf


def l2n(v, eps=1e-12):
    return v / (tf.sqrt(tf.reduce_sum(tf.square(v))) + eps)


class SNDense(keras.layers.Layer):
    def __init__(self, units, activation=None, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.activation = keras.activations.get(activation)

    def build(self, shape):
        self.kernel = self.add_weight(name="kernel", shape=(shape[-1], self.units), initializer="glorot_uniform")
        self.bias = self.add_weight(name="bias", shape=(self.units,), initializer="zeros")
        self.u = self.add_weight(name="u", shape=(1, self.units), initializer="random_normal", trainable=False)

    def _spectral_norm(self):
        w = tf.convert_to_tensor(self.kernel)
        v = l2n(tf.matmul(tf.convert_to_tensor(self.u), w, transpose_b=True))
        u = l2n(tf.matmul(v, w))
        sigma = tf.matmul(tf.matmul(v, w), u, transpose_b=True)
        self.u.assign(tf.stop_gradient(u))
        return w / sigma

    def call(self, x):
        self.kernel = self._spectral_norm()
        return self.activation(tf.matmul(x, self.kernel) + self.bias)


class Critic(keras.Model):
    def __init__(self):
        super().__init__(name="critic")
        self.conv = keras.layers.Conv1D(6, 3, activation="leaky_relu", name="conv")
        self.flat = keras.layers.Flatten(name="flat")
        self.hidden = SNDense(8, "leaky_relu", name="hidden")
        self.score = SNDense(1, name="score")

    def build(self, shape):
        self.conv.build(shape)
        self.hidden.build((None, 48))
        self.score.build((None, self.hidden.units))
        self.built = True

    def call(self, x):
        return self.score(self.hidden(self.flat(self.conv(x))))

    def train_step(self, data):
        real, fake = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.relu(1.0 - self(real, training=True)))
            loss += 0.5 * tf.reduce_mean(tf.nn.relu(1.0 + self(fake, training=True)))
        grads = tape.gradient(loss, self.trainable_variables)
        pairs = zip(grads, self.trainable_variables, strict=True)
        self.optimizer.apply_gradients((g, v) for g, v in pairs if g is not None)
        return {"hinge": loss}


def build():
    keras.utils.set_random_seed(8)
    rng = np.random.default_rng(8)
    real = rng.normal(size=(6, 10, 2)).astype("float32")
    fake = rng.normal(size=(6, 10, 2)).astype("float32")
    critic = Critic()
    critic(real[:2])
    critic.compile(keras.optimizers.Adam(1e-4), run_eagerly=True)
    return {"kind": "keras", "model": critic, "x": real, "y": fake, "fit_kwargs": {"batch_size": 6}}
