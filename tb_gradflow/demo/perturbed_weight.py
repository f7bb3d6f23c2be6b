"""The gradient at a perturbed weight that the loss does not use. Expect: output_not_used.

Sharpness-aware training needs the gradient at a point close to the weights. `slope + nudge` is a new tensor, and a loss
that was computed from `slope` itself does not depend on it: there is nothing to differentiate. Based on a question on
Stack Overflow.
"""

from __future__ import annotations

import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow

TRUE_SLOPE, TRUE_OFFSET = 2.0, -1.0
NUDGE = 0.05


class Line(keras.Model):  # type: ignore[misc]  # Keras has no types
    """A straight line, trained with the gradient at a point close to its slope."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.slope = self.add_weight(name="slope", shape=(), initializer="zeros")
        self.offset = self.add_weight(name="offset", shape=(), initializer="zeros")

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return self.at(self.slope, x)

    def at(self, slope: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        return slope * x + self.offset

    def train_step(self, data: Any) -> dict[str, tf.Tensor]:
        x, y = data
        with tf.GradientTape() as tape:
            nudged = self.slope + NUDGE
            loss = self.loss_at(nudged, x, y)
        gradients = tape.gradient(loss, [nudged, self.offset])
        self.optimizer.apply(gradients, [self.slope, self.offset])
        return {"loss": loss}

    def loss_at(self, nudged: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(tf.square(self.at(self.slope, x) - y))


class NudgedLine(Line):
    """The same, but the loss is computed from the perturbed slope."""

    def loss_at(self, nudged: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        return tf.reduce_mean(tf.square(self.at(nudged, x) - y))


def train(log_dir: str, fixed: bool = False) -> keras.Model:
    keras.utils.set_random_seed(1)
    model = NudgedLine(name="line") if fixed else Line(name="line")
    model.compile(optimizer=keras.optimizers.Adam(0.15))
    x = np.random.default_rng(0).normal(size=(800, 1)).astype(np.float32)
    y = TRUE_SLOPE * x + TRUE_OFFSET
    recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=1, try_fixes=True)
    model.fit(x, y, batch_size=32, callbacks=[recorder])
    return model


if __name__ == "__main__":
    train(sys.argv[1], fixed="fixed" in sys.argv[2:])
