# mypy: ignore-errors
"""Inverse heat problem: u(x, t) is a ReLU network, the diffusivity is learned. u_xx of a ReLU network is zero."""

from itertools import pairwise

import numpy as np
import tensorflow as tf


class MLP(tf.Module):
    def __init__(self, sizes, activation, name):
        super().__init__(name=name)
        rng = np.random.default_rng(7)
        self.activation = activation
        self.w, self.b = [], []
        for i, (a, c) in enumerate(pairwise(sizes)):
            self.w.append(tf.Variable(rng.normal(size=(a, c)).astype("float32") * (2.0 / a) ** 0.5, name=f"w{i}"))
            self.b.append(tf.Variable(rng.normal(size=(c,)).astype("float32") * 0.1, name=f"b{i}"))

    def __call__(self, z):
        for w, b in zip(self.w[:-1], self.b[:-1], strict=True):
            z = self.activation(tf.matmul(z, w) + b)
        return tf.matmul(z, self.w[-1]) + self.b[-1]


def derivatives(net, x, t):
    with tf.GradientTape() as second:
        second.watch(x)
        with tf.GradientTape(persistent=True) as first:
            first.watch([x, t])
            u = net(tf.concat([x, t], 1))
        u_x = first.gradient(u, x)
        u_t = first.gradient(u, t)
    u_xx = second.gradient(u_x, x, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return u, u_t, u_xx


class Problem:
    def __init__(self):
        self.net = MLP([2, 12, 12, 1], tf.nn.relu, "u")
        self.log_nu = tf.Variable(-1.0, name="log_nu")

    def residual(self, x, t):
        _, u_t, u_xx = derivatives(self.net, x, t)
        return u_t - tf.exp(self.log_nu) * u_xx

    def loss(self, x, t, x0, u0):
        pde = tf.reduce_mean(tf.square(self.residual(x, t)))
        initial = tf.reduce_mean(tf.square(self.net(tf.concat([x0, tf.zeros_like(x0)], 1)) - u0))
        return pde + 10.0 * initial


def build():
    tf.random.set_seed(7)
    p = Problem()
    rng = np.random.default_rng(7)
    x = tf.constant(rng.uniform(-1, 1, size=(24, 1)).astype("float32"))
    t = tf.constant(rng.uniform(0, 1, size=(24, 1)).astype("float32"))
    x0 = tf.constant(rng.uniform(-1, 1, size=(12, 1)).astype("float32"))
    return {
        "kind": "function",
        "loss_fn": p.loss,
        "variables": [*p.net.w, *p.net.b, p.log_nu],
        "args": (x, t, x0, tf.sin(np.pi * x0)),
    }
