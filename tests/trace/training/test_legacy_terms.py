"""Keras 2: terms of a loss, rows of a batch and ranges of values, beside a plain tape; and what is not measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import tb_gradflow
from tb_gradflow import GradFlowCallback
from tb_gradflow.errors import SetupError
from tests.trace.findings.test_loss_terms import assert_figures_of_plain_tape
from tests.trace.recording import read

layers = tf_keras.layers


def data(rows: int = 8) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).normal(size=(rows, 6)).astype("float32")
    return x, x[:, :1] + 0.5


def heads() -> Any:
    tf_keras.utils.set_random_seed(3)
    x = tf_keras.Input((6,))
    h = layers.Dense(8, "tanh", name="trunk", kernel_regularizer="l2")(x)
    h = layers.ActivityRegularization(l2=0.01, name="small")(h)
    model = tf_keras.Model(x, [layers.Dense(1, name="price")(h), layers.Dense(1, name="trend")(h)])
    model.compile(tf_keras.optimizers.SGD(0.05), ["mse", "mse"], loss_weights=[1.0, 0.3])
    return model


class Named:
    """A variable of Keras 2 with the path that the report has for it."""

    def __init__(self, variable: Any) -> None:
        self.value = variable
        self.path = variable.name.removesuffix(":0")


def test_the_terms_of_a_fit_are_those_of_a_plain_tape_and_change_no_bit(tmp_path: Path) -> None:
    x, y = data()
    plain, recorded = heads(), heads()
    first = [np.array(weight) for weight in plain.weights]
    plain.fit(x, [y, y], epochs=3, verbose=0)

    recorded.fit(x, [y, y], epochs=3, verbose=0, callbacks=[GradFlowCallback(tmp_path, update_freq=1, terms=True)])

    for one, other in zip(plain.weights, recorded.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    model = heads()
    for weight, value in zip(model.weights, first, strict=True):
        weight.assign(value)

    def losses() -> dict[str, Any]:
        price, trend = model(x)
        hidden = model.get_layer("trunk")(x)
        return {
            "price": tf.reduce_mean(tf.square(price - y)),
            "trend": 0.3 * tf.reduce_mean(tf.square(trend - y)),
            "regularizers": 0.01 * tf.reduce_sum(tf.square(model.get_layer("trunk").kernel)),
            "small": 0.01 * tf.reduce_sum(tf.square(hidden)) / len(x),
        }

    log = tb_gradflow.open_log(tmp_path)
    report = log.report(0)
    order = [term.name for term in report.terms]
    assert_figures_of_plain_tape(
        report, lambda: {name: losses()[name] for name in order}, [Named(each) for each in model.trainable_variables]
    )
    assert set(order) == set(losses())
    assert log.report().healthy


def test_a_function_of_a_keras_2_model_has_terms_and_rows() -> None:
    x, y = data()
    model = heads()

    def loss(x: Any, y: Any) -> Any:
        price, trend = model(x)
        price_loss = tf.reduce_mean(tf.square(price - y))
        trend_loss = tf.reduce_mean(tf.square(trend - y))
        return price_loss + 0.3 * trend_loss

    report: Any = tb_gradflow.explain(loss, args=(x, y), variables=model.trainable_variables, examples=True)

    assert [term.name for term in report.terms] == ["price_loss", "trend_loss"]
    norms = []
    for row in range(len(x)):
        with tf.GradientTape() as tape:
            value = loss(x[row : row + 1], y[row : row + 1])
        norms.append(float(tf.linalg.global_norm(tape.gradient(value, model.trainable_variables))))
    assert report.examples.norms == pytest.approx(norms, rel=1e-4)


class Logarithm(tf_keras.layers.Layer):
    def call(self, x: Any) -> Any:
        return tf.math.log(x)


def logarithms() -> Any:
    tf_keras.utils.set_random_seed(3)
    model = tf_keras.Sequential(
        [tf_keras.Input((5,)), layers.Dense(5, kernel_initializer="identity", name="d"), Logarithm(), layers.Dense(1)]
    )
    model.compile("sgd", "mse")
    return model


def test_ranges_are_measured_and_a_nan_of_three_rows_is_found_in_the_forward_pass(tmp_path: Path) -> None:
    x = np.abs(np.random.default_rng(0).normal(size=(1024, 5))).astype("float32") + 0.1
    x[[512 + 17, 512 + 203, 512 + 400], 4] = 0.0
    recorder = GradFlowCallback(tmp_path, update_freq=1)
    model = logarithms()
    model.compile(tf_keras.optimizers.SGD(0.0), "mse")

    model.fit(x, x[:, :1], batch_size=512, shuffle=False, verbose=0, callbacks=[recorder])

    recorded = read(tmp_path)
    [row] = [each.row for each in recorded.trace.ranges if recorded.trace.ops[each.op].type == "Log"]
    for step, part in enumerate((x[:512], x[512:])):
        assert recorded.gradients[step][row][2:4].tolist() == pytest.approx([part.min(), part.max()])
    report = tb_gradflow.open_log(tmp_path).report(1)
    [finding] = [each for each in report.findings if each.severity == "error"]
    assert finding.op is not None
    assert (finding.cause, finding.op.type, finding.examples) == ("log_zero", "Log", None)
    assert "The forward pass of this step was not measured" not in " ".join(str(report).split())
    assert "is exactly 0 in 3 of 2560 elements" in " ".join(str(report).split())


def test_explain_of_a_keras_2_model_says_what_to_use() -> None:
    x, y = data()

    with pytest.raises(SetupError, match="use GradFlowCallback in its `fit`"):
        tb_gradflow.explain(heads(), x, [y, y], examples=True)
