# mypy: ignore-errors
"""A regression line whose loss over all rows is summed by `tf.data`."""

import numpy as np
import tensorflow as tf


class Line(tf.Module):
    def __init__(self):
        super().__init__(name="line")
        self.slope = tf.Variable([0.3, -0.2], name="slope")
        self.offset = tf.Variable(0.1, name="offset")
        self.log_noise = tf.Variable(-0.5, name="log_noise")

    def residual(self, row, value):
        return value - tf.tensordot(self.slope, row, 1) - self.offset

    def total(self, rows):
        return rows.reduce(tf.constant(0.0), lambda acc, item: acc + tf.square(self.residual(*item)))


def build():
    line = Line()
    rng = np.random.default_rng(207)
    x = rng.normal(size=(20, 2)).astype("float32")
    y = (x @ np.array([1.0, 2.0], "float32") + 0.5).astype("float32")
    rows = tf.data.Dataset.from_tensor_slices((x, y))

    def loss_fn():
        precision = tf.exp(-2.0 * line.log_noise)
        return 0.5 * precision * line.total(rows) / 20.0 + line.log_noise

    return {"kind": "function", "loss_fn": loss_fn, "variables": [line.slope, line.offset, line.log_noise], "args": ()}
