"""A weight is read before it is written, however TensorFlow optimizes the graph of a step that records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tb_gradflow

ROUNDS = 16
"""One of four went wrong, so that all go right by chance once in a hundred."""


class Critic(keras.Model):
    """Of a GAN whose critic is penalised for its slope: called three times, with a gradient inside of the gradient."""

    def __init__(self) -> None:
        super().__init__(name="critic")
        self.first = keras.layers.Dense(8, activation="relu")
        self.second = keras.layers.Dense(8, activation="relu")
        self.score = keras.layers.Dense(1, use_bias=False)

    def call(self, x: Any) -> Any:
        return self.score(self.second(self.first(x)))

    def train_step(self, data: Any) -> Any:
        real, fake = data
        with tf.GradientTape() as tape:
            between = 0.3 * real + 0.7 * fake
            with tf.GradientTape() as inner:
                inner.watch(between)
                scores = self(between, training=True)
            length = tf.sqrt(tf.reduce_sum(tf.square(inner.gradient(scores, between)), axis=1))
            loss = tf.reduce_mean(self(fake)) - tf.reduce_mean(self(real)) + 10.0 * tf.reduce_mean((length - 1.0) ** 2)
        self.optimizer.apply(tape.gradient(loss, self.trainable_weights), self.trainable_weights)
        return {"loss": loss}


def trained(*callbacks: Any) -> list[Any]:
    keras.utils.clear_session()
    keras.utils.set_random_seed(49)
    model, draw = Critic(), np.random.default_rng(49)
    real, fake = (draw.uniform(size=(8, 5)).astype("float32") for _ in range(2))
    model(real[:1])
    model.compile(keras.optimizers.SGD(0.1))
    model.fit(real, fake, batch_size=8, verbose=0, callbacks=list(callbacks))
    return [weight.numpy() for weight in model.weights]


def test_a_gradient_inside_of_a_gradient_is_of_the_weights_before_the_step(tmp_path: Path) -> None:
    plain = trained()

    for place in range(ROUNDS):
        recorder = tb_gradflow.GradFlowCallback(tmp_path / str(place), update_freq=1, catch_nonfinite=False)
        for mine, theirs in zip(trained(recorder), plain, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-6)
