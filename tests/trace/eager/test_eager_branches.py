"""An eager `tf.cond` is explained like a compiled one: its condition decides, and what it decides by gets nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.serve.reports.report import Report

X, Y = np.array([[0.3], [0.5]], "float32"), np.array([[0.2], [0.1]], "float32")

Chooses = Callable[[Any, Any], Any]


class Choosing(keras.layers.Layer):
    """Gives what `chooses` makes of the input and of its weight."""

    def __init__(self, chooses: Chooses) -> None:
        super().__init__(name="choosing")
        self.chooses = chooses

    def build(self, shape: Any) -> None:
        self.weight = self.add_weight(name="weight", shape=[1], initializer="ones")

    def call(self, x: Any) -> Any:
        return self.chooses(x, self.weight)


def explained(chooses: Chooses, *, eagerly: bool) -> Report:
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, name="dense"), Choosing(chooses)], name="model")
    model.compile("adam", "mse", run_eagerly=eagerly)
    return tb_gradflow.explain(model, X, Y)


def of_existing(x: Any, weight: Any) -> Any:
    """A branch that hands back a tensor from before."""
    before = x * weight
    return tf.cond(tf.reduce_sum(weight) > 0, lambda: before, lambda: -before)


HEALTHY: dict[str, Chooses] = {
    "decided by data": lambda x, w: tf.cond(tf.reduce_sum(x) > 0, lambda: x * w, lambda: x - w),
    "decided by a weight of both branches": lambda x, w: tf.cond(tf.reduce_sum(w) > 0, lambda: x * w, lambda: x - w),
    "of a tensor from before": of_existing,
    "several results": lambda x, w: tf.add_n(tf.cond(tf.reduce_sum(w) > 0, lambda: (x * w, x + w), lambda: (x, x))),
    "nested": lambda x, w: tf.cond(
        tf.reduce_sum(w) > 0,
        lambda: tf.cond(tf.reduce_sum(x) > 1000, lambda: x * w * 2, lambda: x * w),
        lambda: x - w,
    ),
    "of integers": lambda x, w: (
        x * w * tf.cast(tf.cond(tf.reduce_sum(w) > 0, lambda: tf.constant(2) * 1, lambda: tf.constant(3)), tf.float32)
    ),
}


@pytest.mark.parametrize("eagerly", [False, True], ids=["compiled", "eagerly"])
@pytest.mark.parametrize("name", HEALTHY)
def test_a_choice_that_lets_every_weight_learn_is_healthy(name: str, eagerly: bool) -> None:
    report = explained(HEALTHY[name], eagerly=eagerly)

    assert [each.status for each in report.variables.values()] == ["connected"] * 3
    assert not report.findings


@pytest.mark.parametrize("eagerly", [False, True], ids=["compiled", "eagerly"])
def test_a_weight_that_only_decides_is_named_with_its_comparison(eagerly: bool) -> None:
    report = explained(
        lambda x, w: tf.cond(tf.reduce_all(tf.math.less(x, 9.0 * w)), lambda: 2.0 * x, lambda: x), eagerly=eagerly
    )

    [finding] = report.findings
    assert report.variables["model/choosing/weight"].status == "disconnected"
    assert (finding.cause, finding.op.type if finding.op else None) == ("predicate_only", "Less")
