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
from tb_gradflow.trace.fit.keras_call import called_as_by_keras

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
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("leak", "rest", "capacity"), (_WIDTH,))
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


class Numbered(Weights):
    """A loop that begins with a tensor that each of its iterations adds, and that is added to its result too. With
    TensorFlow 2.21 the gradients of the first two leave the loop as `exit/_99` and `exit/_100`."""

    def __init__(self) -> None:
        super().__init__()
        self.shifts = [self.add_weight(shape=(_WIDTH,), initializer="zeros", trainable=False) for _ in range(5)]

    def call(self, x: Any) -> Any:
        x = x[:, 0]
        for shift in self.shifts:
            x = x + shift
        x = x * self.gain
        _, h = tf.while_loop(lambda step, h: step < 3, lambda step, h: (step + 1, tf.tanh(h * 0.7 + x)), [0, x])
        return (h + x) @ self.kernel


def recurrent() -> Any:
    return keras.Sequential([keras.Input((_STEPS, _WIDTH)), keras.layers.RNN(Liquid())])


PROGRAMS: list[tuple[Callable[[], Any], Any]] = [
    (recurrent, "variables"),
    (Equilibrium, "all"),
    (InAFunction, "layers"),
    (Early, "all"),
    (Numbered, "all"),
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


def _own_call(step: Callable[[Any], Any], batch: Any) -> tuple[Any, Any]:
    """The call of a step, and what it returns."""
    compiled = called_as_by_keras(step, is_paired=True)
    operations = compiled.get_concrete_function(batch).graph.get_operations()
    [call] = [each for each in operations if each.type in ("PartitionedCall", "StatefulPartitionedCall")]
    return call, compiled(batch)


def test_what_is_measured_adds_no_result_to_the_function_of_the_step() -> None:
    def step(batch: Any) -> Any:
        return {"loss": tf.reduce_sum(batch), "count": 2}, {"norms": batch * 3.0, "index": tf.constant(7)}

    call, (results, more) = _own_call(step, tf.constant([1.0, 2.0]))

    assert call.name == call.type
    assert len(call.outputs) == 2
    assert (results["loss"].numpy(), int(results["count"])) == (3.0, 2)
    assert (more["norms"].numpy().tolist(), int(more["index"])) == ([3.0, 6.0], 7)


@pytest.mark.parametrize("results", [{}, 4, None, [tf.RaggedTensor.from_row_lengths([1.0, 2.0], [2, 0])]])
def test_results_without_a_tensor_are_returned_as_they_are(results: Any) -> None:
    _, (returned, more) = _own_call(lambda batch: (results, {"norms": batch * 3.0}), tf.constant([1.0, 2.0]))

    assert str(tf.nest.map_structure(np.asarray, returned, expand_composites=True)) == str(
        tf.nest.map_structure(np.asarray, results, expand_composites=True)
    )
    assert more["norms"].numpy().tolist() == [3.0, 6.0]
