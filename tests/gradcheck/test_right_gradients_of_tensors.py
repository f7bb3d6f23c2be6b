"""Functions of tensors: right gradients that are hard for finite differences, and what cannot be compared at all.

The same of NumPy functions: test_right_gradients.py, test_what_is_not_known.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.errors import SetupError
from tests.gradcheck.test_right_gradients import LOGITS, RNG, ROWS, SYMMETRIC, WEIGHTS

POINT = tf.constant([0.3, 1.7, 2.2], tf.float64)
KEPT = tf.Variable(0.0)


def in_half_precision(w: Any) -> Any:
    half = tf.cast(w, tf.float16)
    return tf.reduce_mean(tf.cast(tf.tanh(tf.constant(ROWS, tf.float16) @ half), tf.float32) ** 2)


def counting(v: Any) -> Any:
    KEPT.assign_add(1.0)
    return tf.reduce_sum(v**2) * KEPT


def cross_entropy(z: Any) -> Any:
    return tf.nn.sparse_softmax_cross_entropy_with_logits([0], z)[0]


def binarised(v: Any) -> Any:
    inside = tf.custom_gradient(lambda x: (tf.sign(x), lambda upstream: upstream * tf.cast(tf.abs(x) <= 1, x.dtype)))
    return tf.reduce_sum(inside(v) * [1.0, 2.0, 3.0])


def network(w: Any) -> Any:
    hidden = tf.nn.relu(tf.constant(ROWS, tf.float32) @ w)
    return tf.reduce_mean((tf.nn.relu(hidden @ tf.constant(RELU[1])) - 1.0) ** 2)


RELU = [RNG.normal(size=size).astype("f4") * 0.5 for size in ((5, 12), (12, 12))]
WAVES = tf.constant([1e8, 1.0, 1e-8])

OF_TENSORS: dict[str, tuple[Callable[..., Any], Any]] = {
    "log-sum-exp": (tf.reduce_logsumexp, tf.constant(20 * LOGITS, tf.float32)),
    "bfloat16": (lambda v: tf.reduce_sum(tf.tanh(v)), tf.constant([0.5, -1.0, 1.5], tf.bfloat16)),
    "float16 inside of float32": (in_half_precision, tf.Variable(WEIGHTS.astype("f4")[:, np.newaxis])),
    "elements of 1e-8 and 1e8": (lambda v: tf.reduce_sum(tf.sin(v * WAVES)), 1 / WAVES),
    "a Cholesky decomposition": (
        lambda a: tf.reduce_sum(tf.math.log(tf.linalg.diag_part(tf.linalg.cholesky(a)))),
        tf.constant(SYMMETRIC, tf.float32),
    ),
    "a saturated cross-entropy": (cross_entropy, tf.constant([[12.0, 0.0, 0.0]])),
    "binarised outside of the clip": (binarised, tf.constant([3.0, 2.0, -7.0])),
    "a network of ReLUs": (network, tf.constant(RELU[0])),
    "NumPy's generator": (lambda v: tf.reduce_sum(v**2) * np.random.uniform(1, 2), tf.constant([1.0, 2.0])),
    "a variable that counts": (counting, tf.constant([1.0, 2.0])),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_TENSORS)
def test_a_right_gradient_of_a_function_of_tensors_agrees(name: str) -> None:
    function, point = OF_TENSORS[name]

    check = tb_gradflow.check_gradients(function, (point,))

    assert check.arguments["0"].verdict == "agrees", str(check)
    assert float(KEPT) == 0


def test_a_bias_that_batch_normalisation_takes_away_has_no_slope_beside_that_of_the_kernel() -> None:
    rows = tf.constant(ROWS, tf.float32)

    def loss(kernel: Any, bias: Any) -> Any:
        hidden = rows @ kernel + bias
        mean, variance = tf.nn.moments(hidden, 0)
        return tf.reduce_mean(tf.abs(tf.tanh((hidden - mean) / tf.sqrt(variance + 1e-3)) - 2.0) ** 1.5)

    check = tb_gradflow.check_gradients(loss, (tf.constant(RELU[0]), tf.constant([0.1] * 12)))

    assert [each.verdict for each in check.arguments.values()] == ["agrees", "agrees"], str(check)


def test_an_argument_that_the_gradient_leaves_out_is_said_not_to_be_compared() -> None:
    check = tb_gradflow.check_gradients(lambda v, w: tf.reduce_sum(v**2 * w), (POINT, POINT), lambda v, w: 2 * v * w)

    assert {name: each.verdict for name, each in check.arguments.items()} == {"0": "agrees"}
    assert "Argument 1 was not compared: your gradient returns nothing for it." in str(check)


def test_what_cannot_be_compared_is_told_at_once() -> None:
    with pytest.raises(SetupError, match="returned only None"):
        tb_gradflow.check_gradients(lambda v: v[0] ** 2, (POINT,), lambda v: None)
    with pytest.raises(SetupError, match="returns 3 values"):
        tb_gradflow.check_gradients(lambda v: v**2, (POINT,), lambda v: 2 * v)
    with pytest.raises(SetupError, match="real and imaginary part"):
        tb_gradflow.check_gradients(abs, (tf.constant(1j),), lambda z: z)


def test_a_complex_argument_beside_a_real_one_is_said_not_to_be_compared() -> None:
    check = tb_gradflow.check_gradients(lambda z, v: tf.abs(z) * v, (tf.constant(2j), tf.constant(3.0, tf.float64)))

    check.assert_correct()
    assert "Argument 0 was not compared: it is complex" in str(check)
