"""`explain` compares gradients that the user wrote with the derivative, and accuses nobody without two witnesses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.record.schema import GradientCheck
from tb_gradflow.serve.reports.report import Report
from tb_gradflow.trace.explain.one_step import explain_function

VALUES = [0.7, -1.3, 2.1]
WEIGHTS = [0.4, -0.9, 0.5]


def explained(function: Callable[[Any], Any], values: Any = VALUES) -> tuple[Report, list[GradientCheck]]:
    """The report on a weighted sum of `function(w)`, and what was found out about its gradient."""
    w = tf.Variable(values, name="w")

    def loss() -> Any:
        result = tf.cast(function(w * 1.0), tf.float32)
        return tf.reduce_sum(tf.reshape(result, [-1]) * tf.constant(WEIGHTS))

    report = tb_gradflow.explain(loss, variables=[w])
    return report, list(explain_function(loss, (), [w]).trace.gradient_checks)


@tf.custom_gradient
def right(x: Any) -> Any:
    return x * x, lambda upstream: 2 * upstream * x


@tf.custom_gradient
def safe_at_zero(x: Any) -> Any:
    # TensorFlow's own derivative of this is NaN at zero.
    x = x - VALUES[0]
    return tf.sqrt(x * x), lambda upstream: upstream * tf.sign(x)


@tf.custom_gradient
def straight_through(x: Any) -> Any:
    return tf.round(x), lambda upstream: upstream


@tf.custom_gradient
def learned_step(x: Any) -> Any:
    # The derivative exists, and is not what anybody would quantise with.
    return tf.round(x * 3) / x, lambda upstream: upstream


@tf.custom_gradient
def hard_gate(x: Any) -> Any:
    return tf.where(x > 0, 1.0, 0.0), lambda upstream: upstream * tf.sigmoid(x)


@tf.custom_gradient
def reversed_(x: Any) -> Any:
    return x, lambda upstream: -0.3 * upstream


@tf.custom_gradient
def clipped(x: Any) -> Any:
    return tf.tanh(x), lambda upstream: tf.clip_by_norm(upstream * (1 - tf.tanh(x) ** 2), 0.01)


@tf.custom_gradient
def guided(x: Any) -> Any:
    return tf.nn.relu(x), lambda upstream: tf.nn.relu(upstream) * tf.cast(x > 0, tf.float32)


@tf.custom_gradient
def let_through_a_clip(x: Any) -> Any:
    return tf.clip_by_value(x, -1.0, 1.0), lambda upstream: upstream


@tf.custom_gradient
def scored(x: Any) -> Any:
    return tf.nn.softplus(x) * tf.stop_gradient(x), lambda upstream: upstream


@tf.custom_gradient
def computed_again(x: Any) -> Any:
    def grad(upstream: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            again = tf.nn.gelu(x)
        return tape.gradient(again, x, output_gradients=upstream)

    return tf.nn.gelu(x), grad


@pytest.mark.parametrize(
    "function",
    [
        right, safe_at_zero, straight_through, learned_step, hard_gate, reversed_, clipped, guided, let_through_a_clip,
        scored, computed_again,
    ],
    ids=lambda function: function.__name__,
)  # fmt: skip
def test_what_is_right_or_meant_is_quiet(function: Any) -> None:
    report, [check] = explained(function)

    assert report.healthy, str(report)
    assert report.variables["w"].status == "connected"
    assert check.function == function.__name__
    assert check.inputs
    assert not check.problem


def test_a_missing_factor_is_measured_and_named() -> None:
    @tf.custom_gradient
    def half(x: Any) -> Any:
        def grad(upstream: Any) -> Any:
            return upstream * x

        return x * x, grad

    report, [check] = explained(half)

    [finding] = report.findings
    assert finding.cause == "custom_gradient_wrong"
    assert report.variables["w"].status == "connected"
    assert "the custom gradient of `half` (test_gradient_check.py:" in finding.message
    assert "0.5 times the derivative" in finding.message
    assert finding.source is not None
    assert finding.source.code == "def grad(upstream: Any) -> Any:"
    assert (check.forward, check.response, check.identity) == (("Mul",), "linear", False)
    [compared] = check.inputs
    assert compared.ratio == pytest.approx(0.5)
    sample = compared.samples[0]
    [place] = sample.index
    assert sample.derivative == pytest.approx(2 * VALUES[place] * WEIGHTS[place], rel=1e-6)
    assert sample.automatic == pytest.approx(sample.derivative, rel=1e-6)
    assert sample.returned == pytest.approx(sample.derivative / 2, rel=1e-6)


@tf.custom_gradient
def wrong_sign(x: Any) -> Any:
    return tf.exp(x), lambda upstream: -upstream * tf.exp(x)


@tf.custom_gradient
def ignores_upstream(x: Any) -> Any:
    return tf.sin(x), lambda upstream: tf.cos(x)


@tf.custom_gradient
def forgotten_term(x: Any) -> Any:
    return x * tf.tanh(x), lambda upstream: upstream * tf.tanh(x)


@tf.custom_gradient
def with_a_branch(x: Any) -> Any:
    y = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(x), lambda: x)
    return y, lambda upstream: upstream


@tf.custom_gradient
def with_a_loop(x: Any) -> Any:
    return tf.map_fn(lambda each: each * each, x), lambda upstream: upstream * x


@tf.custom_gradient
def zeros(x: Any) -> Any:
    return x * x, tf.zeros_like


@tf.custom_gradient
def summed(x: Any) -> Any:
    return x * x, lambda upstream: tf.reduce_sum(2 * upstream * x)


@pytest.mark.parametrize(
    ("function", "severity", "says"),
    [
        (wrong_sign, "error", "everywhere with the wrong sign"),
        (ignores_upstream, "error", "it does not depend on the upstream gradient"),
        (forgotten_term, "warning", "where the derivative is"),
        (with_a_branch, "warning", "where the derivative is"),
        (with_a_loop, "warning", "0.5 times the derivative"),
        (zeros, "error", "itself returns zeros, where the derivative is"),
        (summed, "error", r"returns a gradient of shape [] for an argument of shape [3]"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_wrong_is_said(function: Any, severity: str, says: str) -> None:
    report, _ = explained(function)

    [finding] = report.findings
    assert (finding.cause, finding.severity) == ("custom_gradient_wrong", severity)
    assert says in finding.message
    assert finding.op is not None
    assert finding.op.type == "IdentityN"


def test_a_function_that_raises_is_blamed_for_the_step_that_raised() -> None:
    @tf.custom_gradient
    def product(x: Any, y: Any) -> Any:
        return x * y, lambda upstream: upstream * y

    report, _ = explained(lambda w: product(w, 2 * w))

    [finding] = report.findings
    assert report.variables["w"].status == "error"
    assert "`product`" in finding.message
    assert "1 gradients for 2 arguments" in finding.message


def test_only_the_variable_behind_the_wrong_argument_is_named() -> None:
    first, second = tf.Variable(VALUES, name="first"), tf.Variable(WEIGHTS, name="second")

    @tf.custom_gradient
    def scaled(x: Any) -> Any:
        # A variable of the function's own: its gradient is returned beside those of the arguments.
        return x * second, lambda upstream, variables=None: (upstream * second, [3 * upstream * x])

    report = tb_gradflow.explain(lambda: tf.reduce_sum(tf.sin(scaled(first))), variables=[first, second])

    [finding] = report.findings
    assert finding.variables == ("second",)
    assert "3 times the derivative" in finding.message


def test_half_precision_is_compared_without_false_alarm() -> None:
    report, [check] = explained(lambda w: right(tf.cast(w, tf.float16)))

    assert report.healthy
    assert check.inputs[0].error_share == pytest.approx(0, abs=1e-2)


def test_what_cannot_be_repeated_is_said_to_be_unverified() -> None:
    @tf.custom_gradient
    def in_python(x: Any) -> Any:
        return tf.reshape(tf.numpy_function(np.sinh, [x], tf.float32), [3]), lambda upstream: upstream

    report, [check] = explained(in_python)

    assert report.healthy
    assert check.problem == "its forward computation runs Python"
    assert "Not known: The custom gradient of `in_python` was not compared with the derivative" in " ".join(
        str(report).split()
    )


def test_a_layer_of_a_keras_model_is_looked_into() -> None:
    class Swish(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return self.activate(x)

        @tf.custom_gradient
        def activate(self, x: Any) -> Any:
            def grad(upstream: Any) -> Any:
                return upstream * tf.sigmoid(x)

            return x * tf.sigmoid(x), grad

    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="before"), Swish(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.random.default_rng(0).normal(size=(8, 4)).astype("float32")

    report = tb_gradflow.explain(model, x, x[:, :1])

    [finding] = report.findings
    assert finding.cause == "custom_gradient_wrong"
    assert finding.variables == ("sequential/before/kernel", "sequential/before/bias")
    assert "`activate`" in finding.message


tf.RegisterGradient("GradflowPassThrough")(lambda op, upstream: upstream)


def test_an_override_has_no_effect_on_a_tape_and_that_is_said() -> None:
    def rounded(x: Any) -> Any:
        with tf.compat.v1.get_default_graph().gradient_override_map({"Round": "GradflowPassThrough"}):
            return tf.round(x)

    report, checks = explained(rounded)

    [finding] = report.findings
    assert finding.cause == "nondiff_rounding"
    assert "`tf.GradientTape` ignores `gradient_override_map`" in finding.message
    assert checks == []


def inner(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def gradient(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)

    return gradient


def test_a_missing_second_derivative_is_named_by_the_function_that_lacks_it() -> None:
    def blurred(x: Any) -> Any:
        return tf.nn.local_response_normalization(tf.reshape(x, [1, 1, 1, 3]))

    report, _ = explained(inner(blurred))

    [finding] = report.findings
    assert report.variables["w"].status == "error"
    assert finding.cause == "second_order_missing"
    assert "the derivative of `tf.nn.local_response_normalization`" in finding.message
    assert "no entry for: LRNGrad" in finding.message


def test_one_refused_way_among_several_is_found() -> None:
    def resized(x: Any) -> Any:
        return tf.image.resize(tf.reshape(x * x, [1, 3, 1, 1]), (6, 1), "bicubic")

    report, _ = explained(inner(resized))

    [finding] = report.findings
    assert report.variables["w"].status == "error"
    assert finding.cause == "second_order_missing"
    assert finding.op is not None
    assert finding.op.type == "ResizeBicubicGrad"


def test_the_slope_of_a_relu_has_a_derivative_of_zero() -> None:
    report, _ = explained(inner(tf.nn.relu))

    [finding] = report.findings
    assert report.variables["w"].status == "zero"
    assert finding.cause == "second_order_missing"
    assert "the second derivative of `tf.nn.relu`" in finding.message


def test_what_a_custom_gradient_asks_of_a_tape_of_its_own_is_no_loss() -> None:
    w = tf.Variable(VALUES, name="w")
    again = tf.recompute_grad(lambda x: tf.exp(x) * w)

    seen = explain_function(lambda: tf.reduce_sum(again(tf.sin(w))) + tf.reduce_sum(computed_again(w)), (), [w])

    assert len(seen.trace.targets) == 1
    assert [check.function for check in seen.trace.gradient_checks] == ["computed_again"]


def eager(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same in a loss that TensorFlow cannot trace."""

    def through_python(x: Any) -> Any:
        result = function(x)
        assert np.all(np.isfinite(result.numpy()))
        return result

    return through_python


@pytest.mark.parametrize("function", [right, straight_through, reversed_, clipped], ids=lambda f: f.__name__)
def test_an_eager_step_is_quiet_about_what_is_right_or_meant(function: Any) -> None:
    report, _ = explained(eager(function))

    assert report.healthy, str(report)
    assert report.variables["w"].status == "connected"


@pytest.mark.parametrize("function", [wrong_sign, forgotten_term, zeros], ids=lambda f: f.__name__)
def test_an_eager_step_is_compared_too(function: Any) -> None:
    report, [check] = explained(eager(function))

    [finding] = report.findings
    assert finding.cause == "custom_gradient_wrong"
    assert finding.source is not None
    assert __file__.endswith(finding.source.file)
    assert check.inputs


def test_a_custom_gradient_that_keyword_arguments_pass_over_is_told() -> None:
    """In a `tf.function` TensorFlow refuses; eagerly it differentiates what the function does, and rounding has no
    derivative."""
    report, [check] = explained(lambda w: straight_through(x=w))

    assert [finding.cause for finding in report.findings] == ["nondiff_rounding"]
    assert check.problem.startswith("its function is called with keyword arguments")
    assert "custom gradient of `straight_through`" in " ".join(str(report).split())
