"""The likelihood of a sample that moves with its mean. Expect: gradient_cancellation.

A throw is drawn around a mean that a network aims at, and throws that hit well should become more likely. But the
sample is the mean plus noise, so the sample moves with the mean, and the distance between the two, which is all that
the likelihood depends on, stays the same. Based on a question on Stack Overflow.
"""

from __future__ import annotations

import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow

TRUE_AIM = 2.0
SPREAD = 0.5


class Thrower(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Aims at a target, trained by the rewards of its throws."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.aim = keras.layers.Dense(1, kernel_initializer="zeros", name="aim")
        self.noise = keras.random.SeedGenerator(1)

    def call(self, wind: tf.Tensor) -> tf.Tensor:
        return self.aim(wind)

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, *unused: Any, **also: Any) -> tf.Tensor:
        throw = self.throw(y_pred)
        reward = -tf.abs(throw - y)
        advantage = tf.stop_gradient(reward - tf.reduce_mean(reward))
        log_likelihood = -0.5 * tf.square((throw - y_pred) / SPREAD)
        return -tf.reduce_mean(advantage * log_likelihood)

    def throw(self, mean: tf.Tensor) -> tf.Tensor:
        return mean + SPREAD * keras.random.normal(tf.shape(mean), seed=self.noise)


class ThrowerThatLetsGo(Thrower):
    """The same, but a throw is a constant: it does not move with the mean."""

    def throw(self, mean: tf.Tensor) -> tf.Tensor:
        return tf.stop_gradient(super().throw(mean))


def train(log_dir: str, fixed: bool = False) -> keras.Model:
    keras.utils.set_random_seed(1)
    model = ThrowerThatLetsGo(name="thrower") if fixed else Thrower(name="thrower")
    model.compile(optimizer=keras.optimizers.Adam(0.1))
    wind = np.random.default_rng(0).normal(size=(3200, 1)).astype(np.float32)
    targets = TRUE_AIM - wind
    recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=1, try_fixes=True)
    model.fit(wind, targets, batch_size=128, callbacks=[recorder])
    return model


if __name__ == "__main__":
    train(sys.argv[1], fixed="fixed" in sys.argv[2:])
