"""One branch for the whole batch, and always the same one. Expect: branch_not_taken.

The heating cost of a house follows the temperature with one factor in frost and with another above. The condition of
`tf.cond` uses the mean of the batch, which is always above freezing: the factor for frost is in a branch that no step
takes, and keeps its initial value. A step cannot know whether later steps take the branch, so this is reported as
information.
"""

from __future__ import annotations

import sys

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow

TRUE_FROST, TRUE_WARMTH = -3.0, -1.0
FIRST_GUESS = -2.0


class Heating(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """The heating cost at a temperature: one factor in frost, and one above."""

    def build(self, input_shape: tuple[int | None, int]) -> None:
        guess = keras.initializers.Constant(FIRST_GUESS)
        self.frost = self.add_weight(name="frost", shape=(), initializer=guess)
        self.warmth = self.add_weight(name="warmth", shape=(), initializer=guess)

    def call(self, temperature: tf.Tensor) -> tf.Tensor:
        freezing = tf.reduce_mean(temperature) < 0.0
        return tf.cond(freezing, lambda: self.frost * temperature, lambda: self.warmth * temperature)


class HeatingOfEach(Heating):
    """The same, with a decision for each house."""

    def call(self, temperature: tf.Tensor) -> tf.Tensor:
        return tf.where(temperature < 0.0, self.frost * temperature, self.warmth * temperature)


def train(log_dir: str, fixed: bool = False) -> keras.Model:
    keras.utils.set_random_seed(1)
    heating = HeatingOfEach(name="heating") if fixed else Heating(name="heating")
    model = keras.Sequential([keras.Input((1,)), heating], name="untaken_branch")
    model.compile(optimizer=keras.optimizers.Adam(0.05), loss="mse")
    temperatures = np.random.default_rng(0).normal(1.0, 1.5, size=(800, 1)).astype(np.float32)
    spent = np.where(temperatures < 0.0, TRUE_FROST * temperatures, TRUE_WARMTH * temperatures)
    recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=1, try_fixes=True)
    model.fit(temperatures, spent, batch_size=32, callbacks=[recorder])
    return model


if __name__ == "__main__":
    train(sys.argv[1], fixed="fixed" in sys.argv[2:])
