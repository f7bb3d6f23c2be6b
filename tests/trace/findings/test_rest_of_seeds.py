"""Densities written by hand, losses at zero, and steps that are too steep: what the report says, and what to paste."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import tensorflow as tf

import tb_gradflow

X = tf.linspace(-1.0, 1.0, 8)
POINTS = tf.constant([[1.0, 2.0, 3.0], [0.5, 1.0, 1.5]])


def gaussian(x: Any) -> Any:
    w = x
    z = w + 0.3 * tf.random.stateless_normal([2], [1, 2])
    return tf.reduce_mean(-tf.square(z - w) / (2 * 0.09) - math.log(0.3) - 0.5)


def steep_bell(t: Any) -> Any:
    return -tf.reduce_sum(tf.exp(-10000.0 * tf.square(X - t)))


def high_power(a: Any) -> Any:
    return 1.0 - tf.pow(a, 60.0)


def steep_tanh(t: Any) -> Any:
    return tf.reduce_mean(tf.tanh(1000.0 * (X - t)) ** 2 * X)


def easy_triplets(w: Any) -> Any:
    near, far = tf.linalg.matvec(POINTS, w), tf.linalg.matvec(9.0 * POINTS, w)
    return tf.reduce_mean(tf.nn.relu(tf.square(near) - tf.square(far) + 0.2))


Said = tuple[Callable[[Any], Any], Any, str, str, str]
PROGRAMS: dict[str, Said] = {
    "density": (gaussian, [0.5, -1.0], "warning", "This is correct", "`tf.stop_gradient(z) - w`"),
    "bell": (steep_bell, 2.0, "warning", "which is too steep", "Multiply by a smaller number"),
    "power": (high_power, 0.1, "warning", "to the power of 60", "Use a smaller power"),
    "tanh": (steep_tanh, 2.0, "error", "multiplies by 1e+03", "can sharpen it later."),
    "triplets": (easy_triplets, [1.0, 1.0, 1.0], "info", "every margin is satisfied", "Nothing to fix"),
}


@pytest.mark.parametrize("eagerly", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_report_says_what_is_flat_and_what_to_do(name: str, eagerly: bool) -> None:
    loss, start, severity, message, fix = PROGRAMS[name]
    variable = tf.Variable(start, name="v")
    tf.config.run_functions_eagerly(eagerly)

    try:
        [finding] = tb_gradflow.explain(lambda: loss(variable), variables=[variable]).findings
    finally:
        tf.config.run_functions_eagerly(False)

    assert finding.severity == severity
    assert message in finding.message
    assert fix in finding.fix
