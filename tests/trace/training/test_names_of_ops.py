"""The user's ops and arguments have the names that they have without the recorder: the graph optimizer sorts the terms
of a sum by name, and adds them in that order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

import tb_gradflow


def numbers(*shape: int, seed: int = 0) -> Any:
    return tf.constant(np.random.default_rng(seed).normal(size=shape).astype("float32"))


class Step:
    """Two updates in one step, each with a tape, of a sum of several terms of which one is the argument."""

    def __init__(self) -> None:
        self.gain = tf.Variable(numbers(8, seed=1))
        self.weights = [tf.Variable(numbers(8, 8, seed=seed)) for seed in (2, 3)]

    def __call__(self, x: Any) -> Any:
        scaled = x * self.gain.read_value()
        joined = tf.concat([x[:, :4], tf.tanh(scaled)[:, 4:]], 1)
        loss = tf.constant(0.0)
        for weight in self.weights:
            with tf.GradientTape() as tape:
                first, second = tf.unstack(tf.stack([joined @ weight, x @ weight]))
                total = tf.add_n([scaled, first, joined, second, x])
                loss = tf.reduce_mean(tf.sqrt(tf.square(total) + 1e-3))
            weight.assign_sub(0.1 * tape.gradient(loss, weight))
        with tf.GradientTape() as tape:
            total = x * self.gain + joined + x
            loss += tf.reduce_mean(tf.sqrt(tf.square(total + scaled) + 1e-3))
        self.gain.assign_sub(0.1 * tape.gradient(loss, self.gain))
        return loss

    def trained(self, compiled: Callable[..., Any]) -> list[Any]:
        for seed in range(3):
            compiled(numbers(4, 8, seed=seed))
        return [each.numpy() for each in (self.gain, *self.weights)]


def names_in(graph: Any) -> dict[str, str]:
    return {each.name: each.type for each in graph.get_operations() if each.type != "Placeholder"}


@pytest.mark.parametrize("tensors", ["all", "variables"])
@pytest.mark.parametrize("every", [1, 2])
def test_sums_are_added_in_the_same_order(tensors: Any, every: int, tmp_path: Path) -> None:
    plain, watched = Step(), Step()

    expected = plain.trained(tf.function(plain.__call__))
    got = watched.trained(tb_gradflow.watch(tmp_path, update_freq=every, tensors=tensors)(watched.__call__))

    for one, other in zip(expected, got, strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_op_of_the_user_has_the_name_that_it_has_without_the_recorder(tmp_path: Path) -> None:
    plain, watched = Step(), Step()
    compiled = tb_gradflow.watch(tmp_path, update_freq=1)(watched.__call__)

    watched.trained(compiled)

    expected = names_in(tf.function(plain.__call__).get_concrete_function(numbers(4, 8)).graph)
    steps: Any = compiled._steps
    [(_, _, forms)] = filter(None, steps._forms.values())
    recorded = context.context().get_function_def(forms.recorded._name.encode())
    for names in (
        names_in(compiled.get_concrete_function(numbers(4, 8)).graph),
        {node.name: node.op for node in recorded.node_def},
    ):
        assert {name: names.get(name) for name in expected} == expected


class Residual(keras.Model):
    """Sums the batch itself with what is made of it."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = [keras.layers.Dense(8, kernel_initializer=keras.initializers.GlorotUniform(k)) for k in range(3)]

    def call(self, x: Any) -> Any:
        first, second, third = (layer(x) for layer in self.dense)
        return tf.add_n([third, x, first * x, second]) + x + first


def test_sums_of_a_batch_are_added_in_the_same_order_in_fit(tmp_path: Path) -> None:
    weights = []
    for callbacks in ([], [tb_gradflow.GradFlowCallback(tmp_path, update_freq=2)]):
        model = Residual()
        model.compile(keras.optimizers.SGD(0.1), "mse")
        model.fit(numbers(12, 8), numbers(12, 8, seed=1), batch_size=4, shuffle=False, verbose=0, callbacks=callbacks)
        weights.append(model.get_weights())

    for one, other in zip(*weights, strict=True):
        np.testing.assert_array_equal(one, other)
