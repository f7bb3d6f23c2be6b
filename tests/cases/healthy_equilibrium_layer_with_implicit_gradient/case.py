# mypy: ignore-errors
"""Deep equilibrium layer: forward by fixed-point iteration, backward by the implicit function theorem."""

import numpy as np
import tensorflow as tf


class Cell(tf.Module):
    def __init__(self, rng, width):
        super().__init__(name="cell")
        self.w = tf.Variable(rng.normal(size=(width, width)).astype("float32") * 0.15, name="w")
        self.u = tf.Variable(rng.normal(size=(width, width)).astype("float32") * 0.5, name="u")
        self.b = tf.Variable(rng.normal(size=width).astype("float32") * 0.1, name="b")

    def __call__(self, z, x):
        return tf.tanh(z @ self.w + x @ self.u + self.b)


def iterate(function, start, steps=40):
    _, z = tf.while_loop(lambda i, z: i < steps, lambda i, z: (i + 1, function(z)), (0, start))
    return z


class Equilibrium(tf.Module):
    def __init__(self, cell):
        super().__init__(name="deq")
        self.cell = cell

    def __call__(self, x):
        @tf.custom_gradient
        def solve(x):
            star = tf.stop_gradient(iterate(lambda z: self.cell(z, x), tf.zeros_like(x)))

            def grad(dy, variables=None):
                with tf.GradientTape(persistent=True) as tape:
                    tape.watch([star, x])
                    again = self.cell(star, x)
                adjoint = dy
                for _ in range(30):
                    adjoint = dy + tape.gradient(again, star, output_gradients=adjoint)
                dx, dv = tape.gradient(again, [x, variables], output_gradients=adjoint)
                return dx, dv

            return star, grad

        return solve(x)


def build():
    rng = np.random.default_rng(97)
    width = 5
    cell = Cell(rng, width)
    layer = Equilibrium(cell)
    inject = tf.Variable(rng.normal(size=(3, width)).astype("float32"), name="inject")
    head = tf.Variable(rng.normal(size=(width, 1)).astype("float32"), name="head")
    x = tf.constant(rng.normal(size=(8, 3)).astype("float32"))
    y = tf.constant(rng.normal(size=(8, 1)).astype("float32"))

    def loss_fn(x, y):
        return tf.reduce_mean(tf.square(layer(x @ inject) @ head - y))

    return {"kind": "function", "loss_fn": loss_fn, "variables": [cell.w, cell.u, cell.b, inject, head], "args": (x, y)}
