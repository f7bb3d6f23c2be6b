"""`explain` says what one step shows, and leaves everything as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.errors import SetupError, UnhealthyGradients
from tests.trace import models
from tests.trace.recording import data

layers = keras.layers


def rounded() -> Any:
    x = keras.Input((6,))
    count = keras.ops.round(layers.Dense(3, name="before")(x))
    model = keras.Model(x, layers.Dense(2, name="after")(count))
    model.compile("adam", "mse", metrics=["mae"])
    return model


def test_a_cut_is_named() -> None:
    report = tb_gradflow.explain(rounded(), *data())

    assert not report.healthy
    assert {name: v.status for name, v in report.variables.items()} == {
        "before/kernel": "disconnected",
        "before/bias": "disconnected",
        "after/kernel": "connected",
        "after/bias": "connected",
    }
    [finding] = report.findings
    assert finding.cause == "nondiff_rounding"
    assert finding.op is not None
    assert finding.op.type == "Round"
    with pytest.raises(UnhealthyGradients, match="before/kernel"):
        report.assert_healthy()
    report.assert_healthy(expected=["before/*"])


@pytest.mark.parametrize(
    "build", [models.functional, models.sequential, models.subclassed, models.own_step, models.compiled_step]
)
def test_training_goes_on_as_if_nobody_had_looked(build: Callable[[], Any]) -> None:
    x, y = data(rows=64)

    def trained(look: bool) -> tuple[list[Any], list[float]]:
        keras.utils.set_random_seed(11)
        model = build()
        first = model.fit(x, y, batch_size=16, verbose=0, shuffle=False)
        if look:
            tb_gradflow.explain(model, x, y, batch_size=16)
        second = model.fit(x, y, batch_size=16, verbose=0, shuffle=True)
        losses = [values[0] for history in (first, second) for values in history.history.values()]
        return [variable.numpy() for variable in (*model.variables, *model.optimizer.variables)], losses

    plain, looked_at = trained(look=False), trained(look=True)

    assert plain[1] == looked_at[1]
    for before, after in zip(plain[0], looked_at[0], strict=True):
        np.testing.assert_array_equal(before, after)


def test_metrics_optimizer_and_compiled_function_are_left_alone() -> None:
    x, y = data(rows=32)
    model = rounded()
    model.fit(x, y, batch_size=16, verbose=0)
    function, iterations = model.train_function, int(model.optimizer.iterations.numpy())
    loss = float(model.metrics[0].result())

    tb_gradflow.explain(model, x, y, batch_size=8)

    assert model.train_function is function
    assert int(model.optimizer.iterations.numpy()) == iterations
    assert float(model.metrics[0].result()) == loss


def test_a_function_and_its_variables() -> None:
    weight = tf.Variable([1.0, 2.0], name="weight")
    cut = tf.Variable([0.3, 0.7], name="cut")

    def loss(x: Any) -> Any:
        return tf.reduce_sum(weight * x * tf.floor(cut))

    report = tb_gradflow.explain(loss, args=(tf.constant([3.0, 4.0]),), variables=[weight, cut])

    assert report.variables["cut"].status == "disconnected"
    assert report.findings[0].op is not None
    assert report.findings[0].op.type == "Floor"


def test_a_recorded_gradient_of_a_function_is_the_tapes() -> None:
    weight = tf.Variable([1.0, 2.0], name="weight")

    def loss(x: Any) -> Any:
        return tf.reduce_sum(tf.sin(weight) * x)

    report = tb_gradflow.explain(loss, args=(tf.constant([3.0, 4.0]),), variables=[weight])

    with tf.GradientTape() as tape:
        value = loss(tf.constant([3.0, 4.0]))
    gradient = report.variables["weight"].gradient
    assert gradient is not None
    assert gradient.norm == pytest.approx(float(tf.norm(tape.gradient(value, weight))), rel=1e-6)


def test_a_step_that_the_optimizer_refuses_is_explained_all_the_same() -> None:
    x = keras.Input((6,))
    model = keras.Model(x, keras.ops.round(layers.Dense(2, name="only")(x)))
    model.compile("sgd", "mse")

    report = tb_gradflow.explain(model, *data())

    assert report.variables["only/kernel"].status == "disconnected"
    assert report.findings[0].cause == "nondiff_rounding"


def test_a_model_that_is_not_compiled_is_told_so() -> None:
    model = keras.Sequential([keras.Input((6,)), layers.Dense(2)])

    with pytest.raises(SetupError, match=r"is not compiled: call `model.compile\(...\)` first"):
        tb_gradflow.explain(model, *data())


@pytest.mark.parametrize("build", [models.functional, models.subclassed, models.own_step])
def test_a_model_that_was_never_trained_starts_as_if_nobody_had_looked(build: Callable[[], Any]) -> None:
    x, y = data(rows=64)

    def trained(look: bool) -> list[Any]:
        keras.utils.set_random_seed(11)
        model = build()
        if look:
            tb_gradflow.explain(model, x, y, batch_size=16)
        model.fit(x, y, batch_size=16, verbose=0, shuffle=False)
        return [variable.numpy() for variable in (*model.variables, *model.optimizer.variables)]

    for before, after in zip(trained(look=False), trained(look=True), strict=True):
        np.testing.assert_array_equal(before, after)


def test_python_control_flow_of_the_users_function_works_as_under_tf_function() -> None:
    weight = tf.Variable(2.0, name="weight")

    def loss(x: Any) -> Any:
        total = tf.constant(0.0)
        for row in x:
            if row > 0.0:
                total += weight * row
        return total

    report = tb_gradflow.explain(loss, args=(tf.constant([1.0, -1.0, 3.0]),), variables=[weight])

    gradient = report.variables["weight"].gradient
    assert gradient is not None
    assert gradient.norm == 4.0


def test_a_layer_that_only_the_train_step_knows_must_be_built_before() -> None:
    class Extra(models.Subclassed):
        def __init__(self) -> None:
            super().__init__()
            self.extra = layers.Dense(2, name="extra")

        def train_step(self, batch: Any) -> Any:
            x, y = batch
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self(x) + self.extra(x) - y))
            weights = self.trainable_variables
            self.optimizer.apply(tape.gradient(loss, weights), weights)
            return {"loss": loss}

    model = Extra()
    model.compile("adam")

    with pytest.raises(SetupError, match=r"its layers extra have no weights yet. Run one batch"):
        tb_gradflow.explain(model, *data())

    model.fit(*data(), verbose=0)
    assert tb_gradflow.explain(model, *data()).healthy


def test_a_step_that_fails_by_itself_is_not_said_to_need_eager_mode() -> None:
    class Outside(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.out = keras.layers.Dense(2)

        def call(self, x: Any) -> Any:
            return self.out(x)

        def train_step(self, data: Any) -> Any:
            x, y = data
            predicted = self(x, training=True)
            with tf.GradientTape() as tape:
                error = tf.reduce_mean(tf.square(predicted - y))
            gradients = tape.gradient(error, self.trainable_variables)
            arrived = [gradient for gradient in gradients if gradient is not None]
            return {"error": tf.norm(arrived[0])}

    model = Outside()
    model.compile("sgd")
    x, y = np.ones((4, 6), "float32"), np.ones((4, 2), "float32")
    model(x)

    report = tb_gradflow.explain(model, x, y)

    assert {finding.cause for finding in report.findings} == {"tape_scope"}
    assert "eager" not in str(report)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (lambda: None, r"got a function, but no variables: pass .*`explain\(loss_fn, args=\(x, y\), variables="),
        ("model.keras", r"takes a compiled Keras model or a function that returns a loss, got a builtins.str"),
    ],
)
def test_what_is_no_model_is_told_apart(given: Any, told: str) -> None:
    with pytest.raises(SetupError, match=told):
        tb_gradflow.explain(given)


def test_a_model_of_keras_2_is_sent_to_the_recorder() -> None:
    tf_keras = pytest.importorskip("tf_keras")

    with pytest.raises(SetupError, match=r"Keras 3 models, and this is a tf_keras.Sequential: use GradFlowCallback"):
        tb_gradflow.explain(tf_keras.Sequential([tf_keras.layers.Dense(1)]))


def test_a_custom_gradient_that_returns_a_python_number_is_measured() -> None:
    """The tape returns the number as it is."""
    weight = tf.Variable([0.5, 2.0], name="weight")

    @tf.custom_gradient
    def squared(value: Any) -> Any:
        return tf.square(value), lambda _: 1.5

    report = tb_gradflow.explain(lambda: tf.reduce_sum(squared(weight)), variables=[weight])

    assert report.variables["weight"].gradient is not None
    assert report.variables["weight"].gradient.max_abs == 1.5
    assert {finding.cause for finding in report.findings} == {"custom_gradient_wrong"}
