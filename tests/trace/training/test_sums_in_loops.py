"""The gradient of a weight that a loop uses several times is a sum in the loop's body. The graph optimizer adds its
terms in the order of their names, and those contain the names of the functions around the loop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow

_ROWS, _STEPS, _WIDTH = 20, 3, 16
_RANDOM = np.random.default_rng(0)
_X = _RANDOM.normal(size=(_ROWS, _STEPS, _WIDTH)).astype("float32")
_Y = _RANDOM.normal(size=(_ROWS, _WIDTH)).astype("float32")
# The last batch is smaller, so the batch size is unknown.
_BATCH = 8


class Liquid(keras.layers.Layer):
    """A liquid time-constant cell: an implicit solver of an ODE, unrolled."""

    state_size = output_size = _WIDTH

    def build(self, _: Any) -> None:
        shapes = dict.fromkeys(("leak", "rest", "capacity"), (_WIDTH,))
        shapes |= dict.fromkeys(("weight", "reversal", "middle", "slope"), (_WIDTH, _WIDTH))
        uniform = keras.initializers.RandomUniform(0.1, 1.0)
        self.of = {name: self.add_weight(name=name, shape=shape, initializer=uniform) for name, shape in shapes.items()}
        self.built = True

    def call(self, x: Any, states: Any) -> Any:
        of, v = self.of, states[0]
        for _ in range(2):
            active = of["weight"] * tf.sigmoid(of["slope"] * (v[..., None] - of["middle"]))
            above = of["capacity"] * v + of["leak"] * of["rest"] + tf.reduce_sum(active * of["reversal"], 1) + x
            v = above / (of["capacity"] + of["leak"] + tf.reduce_sum(active, 1) + 1e-8)
        return v, [v]


class Weights(keras.Model):
    """A model with a kernel and a gain."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name=name)
        normal = keras.initializers.RandomNormal(stddev=0.5)
        self.kernel = self.add_weight(name="kernel", shape=(_WIDTH, _WIDTH), initializer=normal)
        self.gain = self.add_weight(name="gain", shape=(_WIDTH,), initializer=normal)


class Equilibrium(Weights):
    """Iterates a layer from the input, which it adds each time and once more at the end."""

    def call(self, x: Any) -> Any:
        x = x[:, 0] * self.gain

        def next_state(step: Any, h: Any) -> Any:
            return step + 1, tf.tanh(h @ self.kernel * self.gain + x) + self.gain * h

        _, h = tf.while_loop(lambda step, h: step < 3, next_state, [tf.constant(0), x])
        return h + x * self.gain


class InAFunction(Weights):
    """A loop in a function that the model calls twice."""

    @tf.function
    def solved(self, h: Any) -> Any:
        for _ in tf.range(3):
            h = tf.tanh(h @ self.kernel + self.gain) * self.gain + h * self.gain
        return h

    def call(self, x: Any) -> Any:
        first = self.solved(x[:, 0])
        return first + self.solved(first * x[:, 1]) * self.gain


class Early(Weights):
    """Adds its input to three terms with names that come before those of arguments."""

    def __init__(self) -> None:
        super().__init__(name="aaa")

    def call(self, x: Any) -> Any:
        total = tf.add_n([x * self.gain, x, tf.tanh(x) * self.gain, tf.sin(x + self.gain)])
        return tf.reduce_mean(total, 1) @ self.kernel


def recurrent() -> Any:
    return keras.Sequential([keras.Input((_STEPS, _WIDTH)), keras.layers.RNN(Liquid())])


PROGRAMS: list[tuple[Callable[[], Any], Any]] = [
    (recurrent, "variables"),
    (Equilibrium, "all"),
    (InAFunction, "layers"),
    (Early, "all"),
]


def fitted(make: Callable[[], Any], *callbacks: Any) -> tuple[list[float], list[Any]]:
    keras.utils.set_random_seed(3)
    model = make()
    model.compile(keras.optimizers.SGD(0.05), "mse", jit_compile=False)
    told = model.fit(_X, _Y, batch_size=_BATCH, epochs=6, shuffle=False, verbose=0, callbacks=list(callbacks))
    return told.history["loss"], model.get_weights()


def looped(make: Callable[[], Any], compiled: Callable[[Any], Any]) -> tuple[list[float], list[Any]]:
    keras.utils.set_random_seed(3)
    model = make()

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - y))
        weights = model.trainable_variables
        for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.05 * gradient)
        return loss

    run = compiled(tf.function(step, reduce_retracing=True))
    parts = [slice(start, start + _BATCH) for start in range(0, _ROWS, _BATCH)] * 6
    return [float(run(tf.constant(_X[part]), tf.constant(_Y[part]))) for part in parts], model.get_weights()


def assert_equal(one: tuple[list[float], list[Any]], other: tuple[list[float], list[Any]]) -> None:
    assert one[0] == other[0]
    for first, second in zip(one[1], other[1], strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(("make", "tensors"), PROGRAMS)
def test_fit_adds_in_the_same_order(make: Callable[[], Any], tensors: Any, tmp_path: Path) -> None:
    """Steps that are recorded and steps that are monitored take turns."""
    recorder = tb_gradflow.GradFlowCallback(tmp_path, update_freq=2, tensors=tensors)

    assert_equal(fitted(make), fitted(make, recorder))


@pytest.mark.parametrize(("make", "tensors"), PROGRAMS[1:3])
def test_a_watched_step_adds_in_the_same_order(make: Callable[[], Any], tensors: Any, tmp_path: Path) -> None:
    watch = tb_gradflow.watch(tmp_path, update_freq=2, tensors=tensors)

    assert_equal(looped(make, lambda step: step), looped(make, watch))
