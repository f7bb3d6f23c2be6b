"""A handwritten sigmoid, so steep that its exponential overflows. Expect: exp_overflow.

A step has no slope, so a steep sigmoid should replace it. Far below the threshold `tf.exp` is infinite: one divided
by infinity is zero, which looks right, but the derivative is infinity times zero. Based on an answer on Stack
Overflow.
"""

from __future__ import annotations

import sys

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow

TRUE_THRESHOLD = 0.7
FIRST_GUESS = 0.4


class Step(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """One above a learned threshold and zero below, as closely as a smooth function can be."""

    def build(self, input_shape: tuple[int | None, int]) -> None:
        self.threshold = self.add_weight(
            name="threshold", shape=(), initializer=keras.initializers.Constant(FIRST_GUESS)
        )

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return 1.0 / (1.0 + tf.exp(-1000.0 * (x - self.threshold)))


class GentleStep(Step):
    """The same with `tf.sigmoid`, and a slope that reaches further."""

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return tf.sigmoid(10.0 * (x - self.threshold))


def train(log_dir: str, fixed: bool = False) -> keras.Model:
    keras.utils.set_random_seed(1)
    step = GentleStep(name="step") if fixed else Step(name="step")
    model = keras.Sequential([keras.Input((1,)), step], name="steep_sigmoid")
    model.compile(optimizer=keras.optimizers.Adam(0.02), loss="mse")
    x = np.random.default_rng(0).uniform(size=(800, 1)).astype(np.float32)
    above = (x > TRUE_THRESHOLD).astype(np.float32)
    recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=1, try_fixes=True)
    model.fit(x, above, batch_size=32, callbacks=[recorder])
    return model


if __name__ == "__main__":
    train(sys.argv[1], fixed="fixed" in sys.argv[2:])
