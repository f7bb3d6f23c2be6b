# mypy: ignore-errors
import keras
import numpy as np
import tensorflow as tf
from keras import layers


class ActNorm(layers.Layer):
    def build(self, shape):
        self.shift = self.add_weight(name="shift", shape=(shape[-1],), initializer="zeros")
        self.log_scale = self.add_weight(name="log_scale", shape=(shape[-1],), initializer="zeros")
        self.ready = self.add_weight(name="ready", shape=(), initializer="zeros", trainable=False)

    def call(self, x):
        def initialise():
            self.shift.assign(-tf.stop_gradient(tf.reduce_mean(x, 0)))
            self.log_scale.assign(-tf.math.log(tf.stop_gradient(tf.math.reduce_std(x, 0)) + 1e-6))
            self.ready.assign(1.0)
            return tf.constant(True)

        done = tf.cond(tf.convert_to_tensor(self.ready) < 0.5, initialise, lambda: tf.constant(True))
        with tf.control_dependencies([done]):
            return (x + self.shift) * tf.exp(self.log_scale), tf.reduce_sum(tf.convert_to_tensor(self.log_scale))


class InvertibleMix(layers.Layer):
    def build(self, shape):
        self.w = self.add_weight(name="w", shape=(shape[-1], shape[-1]), initializer="orthogonal")

    def call(self, x):
        return tf.matmul(x, self.w), tf.linalg.slogdet(tf.convert_to_tensor(self.w))[1]


class Coupling(layers.Layer):
    def __init__(self, dim, **kw):
        super().__init__(**kw)
        self.h, self.out = (
            layers.Dense(16, activation="relu", name="h"),
            layers.Dense(dim, kernel_initializer=keras.initializers.RandomNormal(0.05), name="out"),
        )

    def call(self, x):
        a, b = tf.split(x, 2, axis=1)
        shift, raw = tf.split(self.out(self.h(a)), 2, axis=1)
        log_scale = tf.math.log_sigmoid(raw + 2.0)
        return tf.concat([a, (b + shift) * tf.exp(log_scale)], 1), tf.reduce_sum(log_scale, axis=1)


class Glow(keras.Model):
    def __init__(self, dim=6, depth=3):
        super().__init__(name="glow")
        self.steps = [
            [ActNorm(name=f"norm{i}"), InvertibleMix(name=f"mix{i}"), Coupling(dim, name=f"couple{i}")]
            for i in range(depth)
        ]

    def call(self, x):
        total = 0.0
        for step in self.steps:
            for layer in step:
                x, log_det = layer(x)
                total += log_det
        return -0.5 * tf.reduce_sum(tf.square(x) + np.log(2 * np.pi), axis=1) + total


def build():
    keras.utils.set_random_seed(36)
    x = np.random.default_rng(36).normal(3.0, 4.0, size=(32, 6)).astype("float32")
    x[:, 1] += 0.7 * x[:, 0]
    x[:, 3] = 0.2 * x[:, 3] ** 2
    model = Glow()
    model(x)
    for step in model.steps:
        step[0].ready.assign(0.0)
        step[0].shift.assign(tf.zeros(6))
        step[0].log_scale.assign(tf.zeros(6))
    model.compile("adam", loss=lambda y, log_prob: -tf.reduce_mean(log_prob))
    return {"kind": "keras", "model": model, "x": x, "y": np.zeros(32, "float32"), "fit_kwargs": {"batch_size": 32}}
