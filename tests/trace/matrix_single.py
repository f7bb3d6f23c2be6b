"""A step of one loss, taken in each way there is: the part of `matrix_loops` that all its steps begin from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

layers = keras.layers
ROWS = 8

Norms = dict[str, dict[str, float]]


class Loop:
    """A step, and what an eager tape says of the gradients that it takes first.

    `losses` answers, by the name that the step's source has for each loss, the loss and its variables.
    """

    losses: Callable[[], dict[str, tuple[Callable[[], Any], Sequence[Any]]]]
    step: Any

    def expected(self) -> Norms:
        return {name: norms(loss, variables) for name, (loss, variables) in self.losses().items()}


def norms(loss: Callable[[], Any], variables: Sequence[Any]) -> dict[str, float]:
    raw = [raw_of(variable) for variable in variables]
    if not raw:
        return {}
    with tf.GradientTape() as tape:
        value = loss()
    gradients = tape.gradient(value, raw)
    return {
        variable.name.removesuffix(":0"): float(tf.norm(tf.cast(tf.abs(tf.convert_to_tensor(g)), tf.float64)))
        for variable, g in zip(raw, gradients, strict=True)
    }


def raw_of(variable: Any) -> Any:
    return getattr(variable, "_value", variable)


def numbers(*shape: int, seed: int = 3) -> Any:
    return tf.constant(np.random.default_rng(seed).normal(size=(ROWS, *shape)).astype("float32"))


def network(name: str, *sizes: int, last: Any = None) -> Any:
    hidden = [layers.Dense(size, "tanh") for size in sizes[1:-1]]
    return keras.Sequential([keras.Input((sizes[0],)), *hidden, layers.Dense(sizes[-1], last)], name=name)


def descend(variables: Sequence[Any], gradients: Sequence[Any]) -> None:
    for variable, gradient in zip(variables, gradients, strict=True):
        variable.assign_sub(0.05 * tf.convert_to_tensor(gradient))


class Single(Loop):
    """One loss of a few variables, taken in the way that `taken` says."""

    def __init__(self, compiled: Any, loss: Callable[..., Any], *initial: Any, taken: str = "plain") -> None:
        variables = [tf.Variable(value, name=f"v{number}") for number, value in enumerate(initial)]

        def taking() -> Any:
            with tf.GradientTape(persistent=taken == "persistent") as tape:
                value = loss(*variables)
                if taken == "inside":
                    return value, tape.gradient(value, variables)
            if taken == "jacobian":
                with tf.GradientTape() as other:
                    several = tf.stack([loss(*variables), 2.0 * loss(*variables)])
                other.jacobian(several, variables)
            return value, tape.gradient(value, variables)

        def step() -> Any:
            if taken == "loop":
                result = tf.constant(0.0)
                for _ in tf.range(2):
                    with tf.GradientTape() as tape:
                        value = loss(*variables)
                    gradients = tape.gradient(value, variables)
                    result += value
                return result
            value, gradients = (tf.function(taking) if taken == "nested" else taking)()
            descend(variables, gradients)
            return tf.math.real(value)

        self.losses = lambda: {"value": (lambda: loss(*variables), variables)}
        if taken == "jacobian":
            # What is recorded of a Jacobian is all of it, one row for each element of its target.
            rows = [1.0, 2.0]
            norm = float(np.linalg.norm(rows))
            self.losses = lambda: {
                "several": (lambda: norm * loss(*variables), variables),
                "value": (lambda: loss(*variables), variables),
            }
        self.step = compiled(step)


def quadratic(a: Any, b: Any) -> Any:
    return tf.reduce_sum(tf.square(tf.tanh(a) * b - 0.3))


def spectrum(a: Any) -> Any:
    return tf.reduce_sum(tf.square(tf.abs(tf.signal.fft(a) - tf.complex(1.0, 0.5))))


def unlikely(mean: Any, spread: Any) -> Any:
    import tensorflow_probability as tfp

    return -tf.reduce_mean(tfp.distributions.Normal(mean, tf.nn.softplus(spread)).log_prob([0.3, -1.2, 2.0]))


def xla(compiled: Any) -> Any:
    return lambda step: compiled(tf.function(step, jit_compile=True))
