"""Why a weight that has a gradient stands still, or nearly so, in the first step that is recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import tb_gradflow
from tb_gradflow.serve.reports.report import Report

X = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
SUM = X.sum(axis=1, keepdims=True)

Make = Callable[[], Report]


def explained(optimizer: Any, *stacked: Any, y: Any = SUM, x: Any = X, steps: int = 0) -> Report:
    model = keras.Sequential([keras.Input(x.shape[1:]), *stacked])
    model.compile(optimizer, "mse")
    if steps:
        model.fit(x, y, epochs=steps, batch_size=len(x), verbose=0)
    return tb_gradflow.explain(model, x, y)


def two() -> tuple[Any, Any]:
    return layers.Dense(8, "tanh", name="first"), layers.Dense(1, name="last")


def at_zero(constraint: Any) -> Any:
    return layers.Dense(1, use_bias=False, kernel_initializer="zeros", kernel_constraint=constraint, name="only")


HELD: dict[str, tuple[Make, str, str]] = {
    "at the bound of all that is trained": (
        lambda: explained(keras.optimizers.SGD(0.1), at_zero("non_neg"), y=-SUM),
        "warning",
        "its constraint, `NonNeg`, undoes the update of SGD",
    ),
    "one element in each column": (
        lambda: explained(
            keras.optimizers.SGD(0.1),
            layers.Dense(8, "tanh", kernel_constraint="unit_norm", kernel_initializer="ones"),
            layers.Dense(1),
            x=X[:, :1],
        ),
        "warning",
        "undoes every update of SGD. It normalises over axis 0, which has length one",
    ),
    "one element in each row": (
        lambda: explained(
            "adam",
            layers.Dense(8, "tanh"),
            layers.Dense(1, kernel_constraint=keras.constraints.UnitNorm(axis=1), kernel_initializer="ones"),
        ),
        "warning",
        "undoes every update of Adam. It normalises over axis 1, which has length one",
    ),
    "gradients that are summed up": (
        lambda: explained(keras.optimizers.Adam(gradient_accumulation_steps=4), *two()),
        "info",
        "it adds up the gradients of 4 steps",
    ),
    "Adadelta with Keras's rate": (
        lambda: explained("adadelta", *two()),
        "info",
        "Adadelta changes them by only",
    ),
    "a penalty that keeps weights at zero": (
        lambda: explained(keras.optimizers.Ftrl(0.1, l1_regularization_strength=1e3), at_zero(None)),
        "info",
        "`l1_regularization_strength`",
    ),
}  # fmt: skip

FREE: dict[str, Make] = {
    "a bound that is far away": lambda: explained(
        "adam", layers.Dense(8, "tanh", kernel_constraint="max_norm"), layers.Dense(1)
    ),
    "a bound that some elements are at": lambda: explained(
        "adam", layers.Dense(8, "relu", kernel_constraint="non_neg"), layers.Dense(1), steps=5
    ),
    "the constraint of one length": lambda: explained(
        "adam", layers.Dense(8, "tanh", kernel_constraint="unit_norm"), layers.Dense(1)
    ),
    "the last step of a sum": lambda: explained(
        keras.optimizers.Adam(gradient_accumulation_steps=4), *two(), steps=3
    ),
    "Adadelta with the rate of its authors": lambda: explained(keras.optimizers.Adadelta(1.0), *two()),
    "Ftrl": lambda: explained(keras.optimizers.Ftrl(0.1), *two()),
}  # fmt: skip


@pytest.mark.parametrize("name", HELD)
def test_what_holds_a_weight_is_named_in_the_first_step(name: str) -> None:
    make, severity, why = HELD[name]

    [finding] = make().findings

    assert (finding.cause, finding.severity) == ("gradient_not_applied", severity)
    assert why in finding.message


@pytest.mark.parametrize("name", FREE)
def test_of_a_weight_that_moves_nothing_is_said(name: str) -> None:
    assert FREE[name]().findings == ()


def of_own_loop(log: Path, *, constraint: Any = None, puts_back: bool = False) -> Report:
    """One compiled step of a loop of the user's own, whose gradients are far from what its optimizer clips."""
    weight, bias = tf.Variable(tf.ones([4, 1]), name="weight", constraint=constraint), tf.Variable([0.0], name="bias")
    optimizer = keras.optimizers.SGD(0.1, clipnorm=100.0)
    optimizer.build([weight, bias])

    @tb_gradflow.watch(str(log), update_freq=1)
    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(X @ weight + bias - 10 * SUM))
        before = tf.identity(weight)
        optimizer.apply_gradients(zip(tape.gradient(loss, [weight, bias]), [weight, bias], strict=True))
        if puts_back:
            weight.assign(before)

    step()
    step.flush()
    return tb_gradflow.open_log(log).report()


def test_a_constraint_of_the_users_own_is_named(tmp_path: Path) -> None:
    [finding] = of_own_loop(tmp_path, constraint=lambda value: tf.clip_by_value(value, -1, 1)).findings

    assert (finding.cause, finding.severity, finding.variables) == ("gradient_not_applied", "info", ("weight",))
    assert "its constraint, a function of your own, undoes the update of SGD" in finding.message


def test_values_that_are_put_back_are_not_said_to_be_clipped(tmp_path: Path) -> None:
    [finding] = of_own_loop(tmp_path, puts_back=True).findings

    assert (finding.cause, finding.severity, finding.variables) == ("gradient_not_applied", "info", ("weight",))
    assert "something restores the values after the update" in finding.message


def test_the_same_loop_without_either_is_clean(tmp_path: Path) -> None:
    assert of_own_loop(tmp_path).findings == ()
