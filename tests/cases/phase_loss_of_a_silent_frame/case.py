# mypy: ignore-errors
"""Complex-valued dense layer trained on phases; the batch holds a silent frame, whose output is 0+0j."""

import numpy as np
import tensorflow as tf


class ComplexDense(tf.Module):
    def __init__(self, n_in, n_out, seed, name):
        super().__init__(name=name)
        rng = np.random.default_rng(seed)
        with self.name_scope:
            self.re = tf.Variable(rng.normal(size=(n_in, n_out)).astype("float32") * 0.5, name="w_re")
            self.im = tf.Variable(rng.normal(size=(n_in, n_out)).astype("float32") * 0.5, name="w_im")

    def __call__(self, z):
        return tf.matmul(z, tf.complex(self.re, self.im))


class PhaseNet(tf.Module):
    def __init__(self):
        super().__init__(name="phase_net")
        with self.name_scope:
            self.first = ComplexDense(5, 4, 0, "first")
            self.second = ComplexDense(4, 3, 1, "second")
            self.gain = tf.Variable(1.0, name="gain")

    def __call__(self, z):
        h = self.first(z)
        h = h * tf.complex(tf.nn.sigmoid(tf.abs(h)), 0.0)
        return self.second(h)


def wrapped_difference(a, b):
    d = tf.math.angle(a) - b
    return 1.0 - tf.cos(d)


def build():
    tf.random.set_seed(5)
    net = PhaseNet()
    rng = np.random.default_rng(5)
    audio = rng.normal(size=(6, 8)).astype("float32")
    audio[-1] = 0.0
    spectrum = tf.signal.rfft(audio)
    target = tf.constant(rng.uniform(-3, 3, size=(6, 3)).astype("float32"))
    loudness = tf.constant(rng.uniform(size=(6,)).astype("float32"))

    def loss_fn(spectrum, target, loudness):
        out = net(spectrum)
        phase = tf.reduce_mean(wrapped_difference(out, target))
        level = tf.reduce_mean(tf.square(net.gain * tf.reduce_mean(tf.square(tf.abs(spectrum)), -1) - loudness))
        return phase + 0.1 * level

    return {
        "kind": "function",
        "loss_fn": loss_fn,
        "variables": [net.first.re, net.first.im, net.second.re, net.second.im, net.gain],
        "args": (spectrum, target, loudness),
    }
