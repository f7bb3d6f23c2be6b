"""What makes a gradient finite, or larger: the step runs once more with one thing changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tb_gradflow.record.report import Evidence
from tests.trace.experiments.logs import tried_in

X = np.random.default_rng(0).uniform(0.5, 1.0, size=(8, 3)).astype("float32")
X[2] = X[5] = 0.0


def root(x: Any, weight: Any) -> Any:
    return tf.reduce_sum(tf.sqrt(tf.reduce_sum(tf.square(x * weight), axis=1)))


def evidence_of(report: Any, kind: str) -> list[Evidence]:
    return [each for finding in report.findings for each in finding.evidence if each.kind == kind]


def gradient_of(x: Any, weight: Any, more: float = 0.0) -> Any:
    """The largest element of the gradient, by the definition of the loss."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.sqrt(tf.reduce_sum(tf.square(x * weight), axis=1) + more))
    return float(tf.reduce_max(tf.abs(tape.gradient(loss, weight))))


def test_the_gradient_of_a_root_at_zero_is_finite_with_a_little_added_and_without_these_rows() -> None:
    weight = tf.Variable([1.0, 2.0, 3.0], name="weight")

    of_tensor, of_rows = evidence_of(
        tb_gradflow.explain(lambda x: root(x, weight), args=(X,), variables=[weight]), "intervention"
    )

    added = float(of_tensor.text.split()[1])
    with_copies = X[[0, 1, 0, 3, 4, 0, 6, 7]]
    assert (of_tensor.of, of_tensor.on, of_tensor.change, of_tensor.gradient) == ("Sqrt", "weight", None, None)
    assert of_tensor.text.startswith(f"With {added:.3g} added to the input of `tf.sqrt`, the loss is ")
    assert of_tensor.text.endswith(
        f"the gradient of `weight` is at most {gradient_of(X, weight, added):.3g} instead of not finite."
    )
    assert of_rows.of == "batch"
    assert of_rows.text == (
        f"With rows 2 and 5 of the batch replaced by row 0, the loss is {float(root(with_copies, weight)):.3g} instead "
        f"of {float(root(X, weight)):.3g}, and the gradient of `weight` is at most "
        f"{gradient_of(with_copies, weight):.3g} instead of not finite."
    )


class Normalised(keras.layers.Layer):
    def call(self, x: Any) -> Any:
        return x / tf.norm(x, axis=-1, keepdims=True)


def fitted(*callbacks: Any) -> Any:
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(3), Normalised(), keras.layers.Dropout(0.3), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((3,)), *layers])
    model.compile(keras.optimizers.SGD(0.01), "mse")
    kept = model.optimizer.apply

    def finite(gradients: Any, *rest: Any) -> Any:
        return kept([tf.where(tf.math.is_nan(each), 0.1, each) for each in gradients], *rest)

    model.optimizer.apply = finite
    history = model.fit(X, X[:, :1], batch_size=4, epochs=2, verbose=0, callbacks=list(callbacks)).history
    return [*(each.numpy() for each in model.variables), history["loss"]]


def test_in_a_fit_the_batch_that_it_drew_is_changed(tmp_path: Path) -> None:
    fitted(GradFlowCallback(tmp_path))

    [(trace, known)] = [(trace, known) for trace, known in tried_in(tmp_path) if known.interventions]
    of_rows = next(each for each in known.interventions if each.op < 0)
    assert 1 <= len(of_rows.rows) <= 2
    assert of_rows.before is None
    assert of_rows.after is not None
    names = {trace.variables[each.variable].name.partition("/")[2] for each in of_rows.gradients}
    assert {"dense/kernel", "dense/bias"} <= names
    assert all(each.was_broken and not each.broken for each in of_rows.gradients)
    of_tensor = next(each for each in known.interventions if each.op >= 0)
    assert (trace.ops[of_tensor.op].type, of_tensor.input) == ("RealDiv", 1)


def test_the_training_is_the_same(tmp_path: Path) -> None:
    for one, other in zip(fitted(), fitted(GradFlowCallback(tmp_path)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_saturated_function_lets_the_gradient_pass_with_a_smaller_input() -> None:
    weight = tf.Variable([300.0, 400.0], name="weight")
    report = tb_gradflow.explain(lambda: tf.reduce_sum(tf.square(tf.tanh(weight) - 0.5)), variables=[weight])

    [found] = evidence_of(report, "intervention")

    # A hundredth of 400 is 4, of 300 it is 3.
    slope = 2 * (np.tanh(3.0) - 0.5) * (1 - np.tanh(3.0) ** 2)
    assert found.text.startswith("With the input of `tf.tanh` multiplied by 0.01, the loss is ")
    assert found.change == pytest.approx(slope, rel=1e-3)
    assert found.gradient == 0.0


def test_a_small_gradient_is_held_against_the_loss() -> None:
    weight = tf.Variable([18.0, 17.0], name="weight")
    report = tb_gradflow.explain(lambda: 1.0 + tf.reduce_sum(tf.sigmoid(-weight)), variables=[weight])

    [found] = evidence_of(report, "slope")

    assert (found.of, found.on) == ("weight", "loss")
    assert found.change == pytest.approx(0.0, abs=1.2e-7)  # the spacing of numbers there
    assert found.text == (
        "Moving the elements of `weight` along the gradient, by up to 0.18, changes the loss, 1, by less than its "
        "rounding; the gradient predicts 8.5e-09."
    )


def test_a_healthy_step_runs_no_intervention(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3, "tanh"), keras.layers.Dense(1)])
    model.compile("sgd", "mse")

    model.fit(X, X[:, :1], verbose=0, callbacks=[GradFlowCallback(tmp_path)])

    assert not any(known.interventions or known.slopes for _, known in tried_in(tmp_path))
