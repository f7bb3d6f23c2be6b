"""Gradients that a tape takes, against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.errors import IncorrectGradients

RNG = np.random.default_rng(0)
X = tf.constant([[1.0, 2.0, 3.0], [0.5, -1.0, 2.0]])
V = tf.constant([0.3, -0.4, 2.0])
ONES = tf.ones([50, 7])
PIXEL = tf.ones([1, 2, 2, 3])


@tf.custom_gradient
def floor_with_slope(v: Any) -> Any:
    return tf.floor(v), lambda upstream: upstream


@tf.custom_gradient
def square_with_wrong_sign(v: Any) -> Any:
    return v**2, lambda upstream: -2 * v * upstream


@tf.custom_gradient
def mean_with_gradient_of_a_sum(v: Any) -> Any:
    return tf.reduce_mean(v**2), lambda upstream: 2 * v * upstream


@tf.custom_gradient
def sign_with_slope(v: Any) -> Any:
    return tf.sign(v), lambda upstream: upstream * tf.cast(tf.abs(v) <= 1, v.dtype)


@tf.custom_gradient
def reversed_gradient(v: Any) -> Any:
    return tf.identity(v), lambda upstream: -0.3 * upstream


@tf.custom_gradient
def sine_with_another_slope(v: Any) -> Any:
    return tf.sin(v), lambda upstream: upstream * tf.cos(2 * v)


CODES = tf.constant(RNG.normal(size=(8, 3)), tf.float32)
GOAL = tf.constant(RNG.normal(size=(2, 3)), tf.float32)


def quantised(v: Any) -> Any:
    """The nearest code, through which the gradient passes, and how far it is away: a VQ-VAE."""
    nearest = tf.gather(CODES, tf.argmin(tf.reduce_sum((v[:, None] - CODES) ** 2, -1), -1))
    passed = v + tf.stop_gradient(nearest - v)
    return tf.reduce_mean((passed - GOAL) ** 2) + 0.25 * tf.reduce_mean((v - tf.stop_gradient(nearest)) ** 2)


def one_hot_of_largest(v: Any) -> Any:
    soft, hard = tf.nn.softmax(v), tf.one_hot(tf.argmax(v, -1), 3)
    return tf.reduce_sum((hard + soft - tf.stop_gradient(soft)) * GOAL) + 0.1 * tf.reduce_sum(v**2)


def accuracy_beside(v: Any) -> Any:
    """Its argmax has no part in the result."""
    tf.reduce_mean(tf.cast(tf.argmax(v, -1) == 0, tf.float32))
    return tf.reduce_sum(sine_with_another_slope(v) ** 2)


def bump(v: Any) -> Any:
    return tf.reduce_sum(tf.where(v > 0, tf.math.log(v), 0.0))


CASES: dict[str, tuple[str, Callable[..., Any], tuple[Any, ...]]] = {
    "a square": ("agrees", lambda v: tf.reduce_sum(v**2), (X,)),
    "compiled": ("agrees", tf.function(lambda v: tf.reduce_sum(v**3)), (V,)),
    "double precision": ("agrees", lambda v: tf.reduce_sum(tf.exp(v)), (tf.cast(V, tf.float64),)),
    "half precision": ("agrees", lambda v: tf.reduce_sum(v**2), (tf.cast(V, tf.float16),)),
    "NumPy arrays for tensors": ("agrees", lambda v: tf.reduce_sum(tf.sin(v)), (np.array([1.0, 2.0]),)),
    "a branch": ("agrees", lambda v: tf.cond(v[0] > 0, lambda: tf.reduce_sum(v**2), lambda: tf.reduce_sum(v)), (V,)),
    "both sides of a where": ("agrees", lambda v: tf.reduce_sum(tf.where(v > 0, v * v, tf.exp(v))), (V,)),
    "numbers drawn by TensorFlow": ("agrees", lambda v: tf.reduce_sum(v**2 * tf.random.normal([2, 3])), (X,)),
    "dropout": ("agrees", lambda v: tf.reduce_sum(tf.nn.dropout(v**2, 0.5)), (X,)),
    "rounds": ("disconnected", lambda v: tf.reduce_sum(tf.floor(v)), (X,)),
    "a mask": ("disconnected", lambda t: tf.reduce_sum(tf.sequence_mask(t, 5, tf.float32)), (tf.constant([2.3]),)),
    "an op without a gradient": ("disconnected", lambda v: tf.reduce_sum(tf.image.adjust_hue(v, 0.1)), (PIXEL,)),
    "the detour of a question": ("kink", lambda v: tf.reduce_sum(v - (v - tf.floor(v))), (ONES,)),
    "its custom floor": ("straight_through", lambda v: tf.reduce_sum(floor_with_slope(v)), (ONES,)),
    "straight through": ("straight_through", lambda v: tf.reduce_sum(v + tf.stop_gradient(tf.round(v) - v)), (V,)),
    "the nearest code of a book": ("straight_through", quantised, (X,)),
    "binary weights with a penalty": (
        "straight_through",
        lambda v: tf.reduce_sum((sign_with_slope(v) - GOAL) ** 2) + 0.01 * tf.reduce_sum(v**2),
        (X,),
    ),
    "binary weights and their mean": (
        "straight_through",
        lambda v: tf.reduce_sum((tf.reduce_mean(tf.abs(v)) * sign_with_slope(v) - GOAL) ** 2),
        (X,),
    ),
    "a hard choice with a soft gradient": ("straight_through", one_hot_of_largest, (X,)),
    "a wrong gradient beside rounded labels": (
        "differs",
        lambda v: tf.reduce_sum((sine_with_another_slope(v) - tf.round(GOAL)) ** 2),
        (X,),
    ),
    "a wrong gradient beside a choice": ("differs", accuracy_beside, (X,)),
    "a largest element that is chosen": (
        "agrees",
        lambda v: tf.reduce_sum(tf.gather(v, tf.argmax(v, -1), batch_dims=1) ** 2),
        (X,),
    ),
    "a gradient that is reversed": ("factor", lambda v: tf.reduce_sum(reversed_gradient(v) ** 2), (X,)),
    "a wrong sign in bfloat16": (
        "factor",
        lambda v: tf.reduce_sum(square_with_wrong_sign(v)),
        (tf.cast(X, tf.bfloat16),),
    ),
    "a ReLU at zero": ("kink", lambda v: tf.reduce_sum(tf.nn.relu(v)), (tf.constant([-1.0, 0.0, 2.0]),)),
    "a leaky ReLU at zero": ("kink", lambda v: tf.reduce_sum(tf.nn.leaky_relu(v)), (tf.constant([0.0, 1.0]),)),
    "the wrong sign": ("factor", lambda v: tf.reduce_sum(square_with_wrong_sign(v)), (X,)),
    "a sum for a mean": ("factor", mean_with_gradient_of_a_sum, (X,)),
    "half of a product is stopped": ("factor", lambda v: tf.reduce_sum(v * tf.stop_gradient(v)), (X,)),
    "NaN from a branch nobody took": ("differs", bump, (tf.constant([1.0, -2.0, 0.0]),)),
    "numbers drawn elsewhere": ("random", lambda v: tf.reduce_sum(v) * float(np.random.default_rng().normal()), (X,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_verdict(name: str) -> None:
    verdict, function, args = CASES[name]

    check = tb_gradflow.check_gradients(function, args)

    assert check.arguments["0"].verdict == verdict, str(check)


def test_a_missing_gradient_is_not_shown_as_zeros_and_its_cause_is_named() -> None:
    check = tb_gradflow.check_gradients(lambda v: tf.reduce_sum(tf.floor(v)), (X,))

    message = check.arguments["0"].message
    assert "it is None, not zero" in message
    assert "`tf.floor`" in message
    with pytest.raises(IncorrectGradients):
        check.assert_correct()


def test_at_a_jump_the_answer_of_a_central_difference_is_told() -> None:
    """The question's 500 is one over twice the step of `compute_gradient`."""
    check = tb_gradflow.check_gradients(lambda v: tf.reduce_sum(floor_with_slope(v)), (ONES,))

    assert "500 at h = 0.001" in check.arguments["0"].message
    check.assert_correct()


def test_a_factor_of_a_gradient_of_the_users_own_may_be_meant() -> None:
    """As that of a gradient reversal layer, Ganin et al. 2016."""
    check = tb_gradflow.check_gradients(lambda v: tf.reduce_sum(reversed_gradient(v) ** 2), (X,))

    message = check.arguments["0"].message
    assert "`reversed_gradient` has a custom gradient" in message
    assert "nothing to fix if it reverses the gradient on purpose" in message
    assert not check.correct


def test_a_stopped_gradient_is_named_where_the_rest_differs() -> None:
    check = tb_gradflow.check_gradients(lambda v: tf.reduce_sum(tf.sin(v) * tf.stop_gradient(v)), (X,))

    assert check.arguments["0"].verdict == "differs"
    assert "A `stop_gradient` is in force" in check.arguments["0"].message


def test_elements_that_rounding_hides_are_moved_together() -> None:
    """A layer in bfloat16: one weight alone changes nothing that its numbers could tell."""
    keras.utils.set_random_seed(0)
    layer = keras.layers.Dense(4, "tanh", dtype="mixed_bfloat16")
    x, y = (tf.constant(RNG.normal(size=(8, width)), tf.float32) for width in (5, 4))
    layer.build((8, 5))

    def loss(kernel: Any) -> Any:
        return tf.reduce_mean((tf.cast(layer(x), tf.float32) - y) ** 2)

    check = tb_gradflow.check_gradients(loss, (layer.kernel.value,))

    assert check.arguments["0"].verdict == "agrees", str(check)


def test_integers_are_no_arguments_to_differentiate_for() -> None:
    check = tb_gradflow.check_gradients(lambda p, i: tf.reduce_sum(tf.gather(p, i) ** 2), (V, tf.constant([0, 2])))

    assert {name: each.verdict for name, each in check.arguments.items()} == {"0": "agrees"}


def test_weights_are_moved_and_put_back() -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(1)])
    x = tf.constant(RNG.normal(size=(8, 4)), tf.float32)
    before = [weight.numpy() for weight in model.trainable_variables]

    check = tb_gradflow.check_gradients(lambda *weights: tf.reduce_mean(model(x) ** 2), model.trainable_variables)

    check.assert_correct()
    assert len(check.arguments) == 4
    assert all(np.array_equal(one, other.numpy()) for one, other in zip(before, model.trainable_variables, strict=True))


def test_seeds_moving_averages_and_the_global_seed_are_left_as_they_were() -> None:
    dropout, normalise = keras.layers.Dropout(0.5, seed=3), keras.layers.BatchNormalization()
    normalise.build((None, 3))
    tf.random.set_seed(7)
    expected = tf.random.normal([2]).numpy()
    tf.random.set_seed(7)
    weights = tf.reshape(tf.sqrt(tf.range(6.0)), (2, 3))

    check = tb_gradflow.check_gradients(
        lambda v: tf.reduce_sum(normalise(dropout(v, training=True), training=True) * weights), (X,)
    )

    assert check.arguments["0"].verdict in ("agrees", "kink")
    assert not np.any(normalise.moving_mean.numpy())
    assert np.array_equal(tf.random.normal([2]).numpy(), expected)


def test_many_weights_are_checked_by_some_directions() -> None:
    check = tb_gradflow.check_gradients(
        lambda v: tf.reduce_mean(tf.sin(v) * v), (tf.constant(RNG.normal(size=(450, 450)), tf.float32),)
    )

    check.assert_correct()
    assert check.evaluations < 1000


def test_your_own_gradient_stands_in_the_place_of_the_tapes() -> None:
    check = tb_gradflow.check_gradients(lambda w: tf.reduce_sum(w**3), (X,), lambda w: 6 * w**2)

    assert (check.arguments["0"].verdict, check.arguments["0"].factor) == ("factor", 2.0)


def test_where_functions_run_eagerly_the_verdict_is_the_same() -> None:
    tf.config.run_functions_eagerly(True)
    try:
        check = tb_gradflow.check_gradients(tf.function(lambda v: tf.reduce_sum(v**2)), (X,))
    finally:
        tf.config.run_functions_eagerly(False)

    check.assert_correct()
