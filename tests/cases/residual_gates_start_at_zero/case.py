# mypy: ignore-errors
"""ReZero blocks, each a `tf.function` of its own, whose gates begin at zero."""

import numpy as np
import tensorflow as tf


class Block(tf.Module):
    def __init__(self, g, name):
        super().__init__(name=name)
        self.w1 = tf.Variable(g.normal([6, 9], stddev=0.4), name=name + "_w1")
        self.w2 = tf.Variable(g.normal([9, 6], stddev=0.4), name=name + "_w2")
        self.alpha = tf.Variable(0.0, name=name + "_alpha")

    def branch(self, x):
        return tf.nn.gelu(x @ self.w1) @ self.w2

    @tf.function
    def __call__(self, x):
        return x + self.alpha * self.branch(x)


class Tower(tf.Module):
    def __init__(self):
        super().__init__(name="tower")
        g = tf.random.Generator.from_seed(219)
        self.blocks = [Block(g, f"block{i}") for i in range(3)]
        self.head = tf.Variable(g.normal([6, 2], stddev=0.4), name="head")

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return x @ self.head


def build():
    tower = Tower()
    rng = np.random.default_rng(219)
    x = tf.constant(rng.normal(size=(8, 6)).astype("float32"))
    y = tf.constant(rng.normal(size=(8, 2)).astype("float32"))

    def loss_fn(x, y):
        return tf.reduce_mean(tf.square(tower(x) - y))

    variables = [v for b in tower.blocks for v in (b.w1, b.w2, b.alpha)] + [tower.head]
    return {"kind": "function", "loss_fn": loss_fn, "variables": variables, "args": (x, y)}
