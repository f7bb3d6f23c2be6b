# mypy: ignore-errors
"""Elastic energy of a tetrahedral mesh; the material field is learned, one element of the rest mesh is flat."""

import numpy as np
import tensorflow as tf

NODES = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]], "float32")
TETS = np.array([[0, 1, 2, 3], [1, 4, 2, 3], [0, 1, 2, 4]], "int32")  # the last one lies in a plane


class Displacement(tf.Module):
    def __init__(self):
        super().__init__(name="displacement")
        g = tf.random.Generator.from_seed(120)
        self.w1 = tf.Variable(g.normal([3, 6], stddev=0.3), name="w1")
        self.w2 = tf.Variable(g.normal([6, 2], stddev=0.3), name="w2")

    def __call__(self, x):
        plane = tf.tanh(x @ self.w1) @ self.w2
        return tf.concat([plane, tf.zeros_like(plane[:, :1])], axis=1)


class Material(tf.Module):
    def __init__(self):
        super().__init__(name="material")
        self.log_mu = tf.Variable(0.1, name="log_mu")
        self.log_lambda = tf.Variable(0.2, name="log_lambda")


def edges(nodes, tets):
    corner = tf.gather(nodes, tets)
    return corner[:, 1:] - corner[:, :1]


def signed_volume(nodes, tets):
    a, b, c = tf.unstack(edges(nodes, tets), axis=1)
    return tf.reduce_sum(a * tf.linalg.cross(b, c), axis=-1) / 6.0


def elastic_energy(material, rest, nodes, tets):
    stretch = tf.reduce_sum(tf.square(edges(nodes, tets) - edges(rest, tets)), axis=[1, 2])
    change = signed_volume(nodes, tets) - signed_volume(rest, tets)
    return tf.exp(material.log_mu) * tf.reduce_mean(stretch) + tf.exp(material.log_lambda) * tf.reduce_mean(
        tf.square(change - 0.05)
    )


def build():
    rest, tets = tf.constant(NODES), tf.constant(TETS)
    field, material = Displacement(), Material()
    load = tf.constant(np.random.default_rng(28).normal(size=(5, 3)).astype("float32"))

    def loss_fn(rest, tets, load):
        u = field(rest)
        return elastic_energy(material, rest, rest + u, tets) - tf.reduce_mean(load * u)

    return {
        "kind": "function",
        "loss_fn": loss_fn,
        "args": (rest, tets, load),
        "variables": [field.w1, field.w2, material.log_mu, material.log_lambda],
    }
