"""What is computed from data alone is left out of a log, and its shape is kept where it meets what is learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tests.trace.recording import read


class Regressor(keras.Model):
    def __init__(self, labelled: tuple[int, ...]) -> None:
        super().__init__(name="regressor")
        self.out = keras.layers.Dense(1)
        self.labelled = labelled

    def call(self, x: Any) -> Any:
        return self.out(x)

    def train_step(self, data: Any) -> Any:
        x, y = data[0], tf.reshape(data[1], self.labelled)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(y - self(x)))
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return {"loss": loss}


@pytest.mark.parametrize(
    ("labelled", "causes"),
    [((-1,), {"labels_broadcast"}), ((-1, 1), set())],
    ids=["labels of rank one", "labels of the predictions' rank"],
)
def test_labels_are_compared_in_a_batch_of_any_size(
    labelled: tuple[int, ...], causes: set[str], tmp_path: Path
) -> None:
    model, draw = Regressor(labelled), np.random.default_rng(3)
    x, y = draw.normal(size=(20, 4)), draw.normal(size=20)
    model.compile(keras.optimizers.SGD(0.01))

    model.fit(x, y, batch_size=8, verbose=0, callbacks=[tb_gradflow.GradFlowCallback(tmp_path)])

    ops = read(tmp_path).trace.ops
    (difference,) = [op for op in ops if op.type == "Sub"]
    assert [(each.input, each.shape) for each in difference.given] == [(0, labelled)]
    (product,) = [op for op in ops if op.type == "MatMul"]
    assert [(each.input, each.shape) for each in product.given] == [(0, (-1, 4))]
    findings = tb_gradflow.open_log(tmp_path).report().findings
    assert {each.cause for each in findings if each.severity != "info"} == causes


def test_a_divisor_that_was_cast_is_a_constant(tmp_path: Path) -> None:
    """It is not what divides zero by zero."""
    weight = tf.Variable([1.0, -1.0])

    @tb_gradflow.watch(tmp_path, update_freq=1)
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight * x) / tf.cast(3, tf.float32)
        weight.assign_sub(tape.gradient(loss, weight))
        return loss

    step(tf.ones(2))
    step.flush()

    (quotient,) = [op for op in read(tmp_path).trace.ops if op.type == "RealDiv"]
    assert [(each.input, each.value) for each in quotient.constants] == [(1, 3.0)]
    assert quotient.given == ()
