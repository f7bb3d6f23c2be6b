"""Two heads, a loss that uses only one, and a step that hides it. Expect: output_not_used.

The model has two outputs, and the loss in its custom training step uses one of them. The gradients of the other head
are None, and because the step skips variables without a gradient, not even Keras's warning appears. Based on an answer
on Stack Overflow.
"""

from __future__ import annotations

import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow


class TwoHeads(keras.Model):  # type: ignore[misc]  # Keras has no types
    """Predicts the sum and the difference of two numbers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.hidden = keras.layers.Dense(8, activation="tanh", name="hidden")
        self.sum = keras.layers.Dense(1, name="sum")
        self.difference = keras.layers.Dense(1, name="difference")

    def call(self, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        hidden = self.hidden(x)
        return self.sum(hidden), self.difference(hidden)

    def train_step(self, data: Any) -> dict[str, tf.Tensor]:
        x, true = data
        with tf.GradientTape() as tape:
            loss = self.loss_of(true, self(x, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        found = [pair for pair in zip(gradients, self.trainable_variables, strict=True) if pair[0] is not None]
        self.optimizer.apply_gradients(found)
        return {"loss": loss}

    def loss_of(self, true: tuple[tf.Tensor, tf.Tensor], told: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        return tf.reduce_mean(tf.square(told[0] - true[0]))


class BothHeads(TwoHeads):
    """The same with a loss for both heads."""

    def loss_of(self, true: tuple[tf.Tensor, tf.Tensor], told: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        return tf.reduce_mean(tf.square(told[0] - true[0])) + tf.reduce_mean(tf.square(told[1] - true[1]))


def train(log_dir: str, fixed: bool = False) -> keras.Model:
    keras.utils.set_random_seed(1)
    model = BothHeads(name="two_heads") if fixed else TwoHeads(name="two_heads")
    model.compile(optimizer=keras.optimizers.Adam(0.05))
    x = np.random.default_rng(0).normal(size=(800, 2)).astype(np.float32)
    true = (x[:, :1] + x[:, 1:], x[:, :1] - x[:, 1:])
    recorder = tb_gradflow.GradFlowCallback(log_dir, update_freq=1, try_fixes=True)
    model.fit(x, true, batch_size=32, callbacks=[recorder])
    return model


if __name__ == "__main__":
    train(sys.argv[1], fixed="fixed" in sys.argv[2:])
