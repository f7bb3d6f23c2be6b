"""What a mask leaves of a layer is one story, for all that it multiplies with."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow

LENGTH = 5


class Masked(keras.Model):
    """An answer from the last step of a sequence, whose mask is zero there."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer
        self.answer = keras.layers.Dense(1, name="answer")

    def call(self, x: Any) -> Any:
        mask = tf.cast(tf.equal(x, 0.0), tf.float32)
        return self.answer((self.layer(x) * mask)[:, -1])


class Skipped(Masked):
    """The same with Keras's own masking."""

    def call(self, x: Any) -> Any:
        return self.answer(self.layer(keras.layers.Masking(0.0)(x)))


def explained(model: keras.Model, x: Any) -> Any:
    model.compile("sgd", "mse")
    model(x)
    return tb_gradflow.explain(model, x, np.ones((len(x), 1), np.float32))


SEQUENCES = [
    lambda: keras.layers.LSTM(3, return_sequences=True, use_cudnn=False),
    lambda: keras.layers.Conv1D(3, 2, padding="same"),
]
ONES = [lambda: keras.layers.GRU(3, use_cudnn=False), lambda: keras.layers.SimpleRNN(3)]


@pytest.mark.parametrize("layer", SEQUENCES)
def test_a_layer_in_front_of_a_mask_and_the_one_behind_it_have_one_finding(layer: Any) -> None:
    x = np.linspace(1, 2, 4 * LENGTH, dtype=np.float32).reshape(4, LENGTH, 1)

    report = explained(Masked(layer()), x)

    [finding] = report.findings
    assert finding.cause == "mask_multiplies_to_zero"
    assert finding.op is not None
    assert finding.op.type == "Mul"
    assert {name for name, each in report.variables.items() if each.status == "zero"} == set(finding.variables)
    assert any(name.endswith("answer/kernel") for name in finding.variables)


@pytest.mark.parametrize("layer", ONES)
def test_a_recurrent_layer_that_skips_all_steps_has_a_mask_to_blame(layer: Any) -> None:
    x = np.zeros((4, LENGTH, 2), np.float32)

    report = explained(Skipped(layer()), x)

    [finding] = report.findings
    assert finding.cause == "mask_multiplies_to_zero"
    assert {name for name, each in report.variables.items() if each.status == "zero"} == set(finding.variables)
    assert "skip every time step" in finding.message


def test_a_mask_that_skips_some_steps_is_quiet() -> None:
    x = np.ones((4, LENGTH, 2), np.float32)
    x[:, :2] = 0.0

    report = explained(Skipped(keras.layers.GRU(3, use_cudnn=False)), x)

    report.assert_healthy()


def test_a_slice_of_nothing_is_said_to_select_nothing() -> None:
    """The differences between the steps of a sequence of one step."""
    weight, other = tf.Variable(tf.ones([3, 3]), name="weight"), tf.Variable(tf.ones([3, 3]), name="other")

    def loss(x: Any) -> Any:
        hidden = tf.einsum("btf,fg->btg", x, weight)
        return tf.reduce_sum(tf.abs(hidden[:, 1:] - hidden[:, :-1])) + tf.reduce_mean((x @ other - 2.0) ** 2)

    report = tb_gradflow.explain(loss, args=(tf.ones([2, 1, 3]),), variables=[weight, other])

    [finding] = report.findings
    assert finding.variables == ("weight",)
    assert "selects none of the values" in finding.message
