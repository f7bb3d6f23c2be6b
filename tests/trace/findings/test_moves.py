"""A weight that moves although its gradient is exactly zero: the finding says what can move it."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow


class Heads(keras.Model):
    """Two heads, the second one behind a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.first = keras.layers.Dense(2)
        self.second = keras.layers.Dense(2, bias_initializer="ones")

    def call(self, x: Any) -> Any:
        return self.first(x), self.second(x)

    def train_step(self, data: Any) -> Any:
        x, mask = data
        with tf.GradientTape() as tape:
            first, second = self(x)
            loss = tf.reduce_mean(first**2) + tf.reduce_mean((mask * second) ** 2)
        weights = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, weights), weights)
        return {"loss": loss}


def message(optimizer: Any) -> str:
    """Of the finding on a head that one step taught and the next one masks."""
    model, x = Heads(), np.ones((4, 3), np.float32)
    model.compile(optimizer)
    model.fit(x, np.ones((4, 1), np.float32), verbose=0)
    [finding] = tb_gradflow.explain(model, x, np.zeros((4, 1), np.float32)).findings
    assert finding.cause == "mask_multiplies_to_zero"
    return str(finding.message)


@pytest.mark.parametrize("optimizer", [lambda: keras.optimizers.Adam(), lambda: keras.optimizers.SGD(momentum=0.9)])
def test_what_an_optimizer_remembers_may_move_a_weight_without_a_gradient(optimizer: Any) -> None:
    assert "remembers gradients of earlier steps" in message(optimizer())


def test_a_decay_apart_from_the_gradient_is_named_with_its_size() -> None:
    assert "SGD applies a weight decay of 0.1 independently of the gradient" in message(
        keras.optimizers.SGD(0.01, weight_decay=0.1)
    )


def test_a_weight_that_stays_is_not_said_to_move() -> None:
    assert "all the same" not in message(keras.optimizers.SGD(0.01))


def test_of_a_weight_of_which_a_part_is_masked_it_is_said_what_moves_it_there() -> None:
    """Elements that are to stand still in some steps, as in a question from which this project was made."""
    weight, x = tf.Variable(tf.zeros(4), name="w"), tf.eye(4)

    def loss(mask: Any) -> Any:
        masked = mask * weight + tf.stop_gradient(tf.abs(1 - mask) * weight)
        return tf.reduce_mean((tf.linalg.matvec(x, masked) - [1.0, 2.0, 3.0, 4.0]) ** 2)

    report = tb_gradflow.explain(loss, args=(tf.constant([0.0, 1.0, 1.0, 0.0]),), variables=[weight])

    (finding,) = report.findings
    assert (finding.cause, finding.severity) == ("mask_multiplies_to_zero", "info")
    assert finding.message.startswith("`w` gets a gradient of exactly zero in 50% of the elements")
    assert "Whether an optimizer still moves these elements was not recorded" in finding.message
    assert "weight.assign(tf.where(mask != 0, weight, before))" in finding.fix
    assert report.variables["w"].status == "connected"


def test_zeros_that_come_from_elsewhere_are_no_mask_of_the_weight() -> None:
    weight = tf.Variable([1.0, 2.0], name="w")

    def loss(scale: Any) -> Any:
        return tf.reduce_sum(tf.gather(weight * scale, [1]) ** 2)

    assert not tb_gradflow.explain(loss, args=(tf.constant([3.0, 3.0]),), variables=[weight]).findings
