"""The gradient of each row of a batch, beside a plain tape's."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow


def data(rows: int = 24, outlier: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(rows, 3)), generator.normal(size=(rows, 1))
    y[5] *= outlier
    return x.astype("float32"), y.astype("float32")


def model(*layers: Any, loss: Any = "mse") -> Any:
    keras.utils.set_random_seed(0)
    built = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(4, "tanh"), *layers, keras.layers.Dense(1, kernel_regularizer="l2")]
    )
    built.compile("sgd", loss)
    return built


def measured(*what: Any, **how: Any) -> Any:
    return tb_gradflow.explain(*what, **how, examples=True).examples


def plain_norms(own: Any, x: np.ndarray, y: np.ndarray) -> list[float]:
    norms = []
    for row in range(len(x)):
        with tf.GradientTape() as tape:
            part = slice(row, row + 1)
            loss = tf.reduce_mean(tf.square(own(x[part]) - y[part])) + sum(own.losses)
        gradients = tape.gradient(loss, [variable.value for variable in own.trainable_variables])
        norms.append(float(tf.linalg.global_norm(gradients)))
    return norms


def test_norms_are_those_of_the_plain_tape() -> None:
    x, y = data()
    own = model()

    examples = measured(own, x, y)

    assert examples.norms == pytest.approx(plain_norms(own, x, y), rel=1e-4)
    assert sum(examples.shares) == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("reduce", [tf.reduce_mean, tf.reduce_sum])
def test_of_a_loss_function_too(reduce: Any) -> None:
    x, y = data()
    kernel = tf.Variable(tf.ones([3, 1]))

    def loss_fn(x: Any, y: Any) -> Any:
        return reduce(tf.square(x @ kernel - y))

    examples = measured(loss_fn, args=(x, y), variables=[kernel])

    error = x @ np.ones((3, 1), "float32") - y
    own = 2 * error * x
    whole = own.sum(0)
    assert examples.norms == pytest.approx(np.linalg.norm(own, axis=1).tolist(), rel=1e-5)
    assert examples.shares == pytest.approx((own @ whole / (whole @ whole)).tolist(), rel=1e-3, abs=1e-5)


def test_a_row_that_gives_most_of_the_gradient_is_named() -> None:
    x, y = data(outlier=1e4)

    report: Any = tb_gradflow.explain(model(), x, y, examples=True)

    assert report.examples.shares[5] > 0.5
    [finding] = [each for each in report.findings if each.cause == "outlying_rows"]
    assert finding.examples == (5,)
    assert "Row 5 of the batch of 24 contributes 100% of its gradient" in finding.message
    assert report.healthy
    assert "median row" not in str(report).splitlines()[-1]  # it is said once


@pytest.mark.parametrize(("outliers", "named"), [((5, 17, 40), (5, 17, 40)), (tuple(range(12)), ())])
def test_a_few_rows_are_named_together_and_many_are_not(outliers: tuple[int, ...], named: tuple[int, ...]) -> None:
    x, y = data(rows=96, outlier=1.0)
    y[list(outliers)] = 500.0

    report: Any = tb_gradflow.explain(model(), x, y, examples=True)

    found = [each.examples for each in report.findings if each.cause == "outlying_rows"]
    assert [tuple(sorted(each)) for each in found] == [named] * bool(named)


def test_the_last_errors_of_a_hinge_loss_are_no_outliers() -> None:
    x, _ = data()
    kernel = tf.Variable(tf.ones([3, 1]))

    bound = float(np.sort(x.sum(1))[-2])

    def loss_fn(x: Any) -> Any:
        return tf.reduce_mean(tf.nn.relu(x @ kernel - bound))

    report: Any = tb_gradflow.explain(loss_fn, args=(tf.constant(x),), variables=[kernel], examples=True)

    assert sum(norm > 0 for norm in report.examples.norms) == 1
    assert not report.findings


def test_no_row_is_named_where_none_stands_out() -> None:
    x, y = data()

    assert "gives" not in str(tb_gradflow.explain(model(), x, y, examples=True)).splitlines()[-1]


@pytest.mark.parametrize(
    "layer", [keras.layers.BatchNormalization(), keras.layers.Dropout(0.5)], ids=["norm", "dropout"]
)
def test_rows_that_depend_on_each_other_are_refused(layer: Any) -> None:
    x, y = data()

    examples = measured(model(layer), x, y)

    assert examples.norms == ()
    assert "do not add up" in examples.reason


def test_rows_whose_own_gradient_is_not_finite() -> None:
    x, y = data()
    x[[3, 8]] = 0.0
    kernel = tf.Variable(tf.ones([3, 1]))

    def loss_fn(x: Any, y: Any) -> Any:
        return tf.reduce_mean(tf.sqrt(tf.square(x @ kernel)) - y)

    report: Any = tb_gradflow.explain(loss_fn, args=(x, y), variables=[kernel], examples=True)

    assert np.flatnonzero(~np.isfinite(report.examples.norms)).tolist() == [3, 8]
    assert "3, 8" in str(report)


def test_the_model_is_left_as_it_was() -> None:
    x, y = data()
    own = model(keras.layers.BatchNormalization())
    before = [variable.numpy() for variable in own.variables]

    tb_gradflow.explain(own, x, y, examples=True)

    assert all(np.array_equal(a, b.numpy()) for a, b in zip(before, own.variables, strict=True))


def test_nothing_is_measured_unless_requested() -> None:
    x, y = data()

    assert tb_gradflow.explain(model(), x, y).examples is None
