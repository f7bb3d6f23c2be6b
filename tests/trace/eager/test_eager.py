"""A step that runs eagerly is explained like one that is compiled."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tests.trace import models
from tests.trace.recording import data

layers = keras.layers


def image_model() -> tuple[Any, Any, Any]:
    model = keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Dropout(0.3),
            layers.Flatten(),
            layers.Dense(3, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    random = np.random.default_rng(0)
    return model, random.normal(size=(16, 8, 8, 3)).astype("float32"), random.integers(0, 3, 16)


def sequence_model() -> tuple[Any, Any, Any]:
    model = keras.Sequential(
        [keras.Input((4,)), layers.Embedding(20, 6, mask_zero=True), layers.LSTM(4), layers.Dense(1)]
    )
    model.compile("adam", "mse")
    random = np.random.default_rng(0)
    return model, random.integers(1, 20, (16, 4)), random.normal(size=(16, 1)).astype("float32")


def penalised_model() -> tuple[Any, Any, Any]:
    """Two tapes, one inside the other."""

    class Penalised(models.Subclassed):
        def train_step(self, batch: Any) -> Any:
            x, y = batch
            with tf.GradientTape() as tape:
                with tf.GradientTape() as inner:
                    inner.watch(x)
                    predicted = self(x, training=True)
                slope = inner.gradient(predicted, x)
                loss = tf.reduce_mean(tf.square(predicted - y)) + 0.1 * tf.reduce_mean(tf.square(slope))
            weights = self.trainable_variables
            self.optimizer.apply(tape.gradient(loss, weights), weights)
            return {"loss": loss}

    model = Penalised()
    x, y = data()
    model(x)
    model.compile("sgd")
    return model, x, y


def half_precision_model() -> tuple[Any, Any, Any]:
    policy = keras.DTypePolicy("mixed_float16")
    hidden = layers.Dense(4, activation="relu", dtype=policy)
    model = keras.Sequential([keras.Input((6,)), hidden, layers.Dense(2, dtype="float32")])
    model.compile(keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam()), "mse")
    return model, *data()


def own_step_model() -> tuple[Any, Any, Any]:
    return models.own_step(), *data()


@pytest.mark.parametrize("build", [image_model, sequence_model, penalised_model, half_precision_model, own_step_model])
def test_a_healthy_eager_model_gets_the_report_of_its_compiled_form(
    build: Callable[[], tuple[Any, Any, Any]],
) -> None:
    def explained(eager: bool) -> Any:
        keras.backend.clear_session(free_memory=False)
        keras.utils.set_random_seed(3)
        model, x, y = build()
        model.run_eagerly = eager
        return tb_gradflow.explain(model, x, y)

    compiled, eager = explained(eager=False), explained(eager=True)

    assert compiled.healthy
    assert eager.healthy
    assert [finding.cause for finding in eager.findings] == [finding.cause for finding in compiled.findings]
    assert list(eager.variables) == list(compiled.variables)
    for name, variable in compiled.variables.items():
        assert eager.variables[name].status == variable.status, name
        assert (eager.variables[name].gradient is None) == (variable.gradient is None), name
        if variable.gradient is not None:
            norms = (eager.variables[name].gradient.norm, eager.variables[name].gradient.max_abs)
            assert norms == pytest.approx((variable.gradient.norm, variable.gradient.max_abs), rel=1e-3, abs=1e-7), name


def test_an_op_that_cuts_is_named_with_its_line() -> None:
    class Rounds(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return tf.round(x)

    model = keras.Sequential([keras.Input((6,)), layers.Dense(3, name="before"), Rounds(), layers.Dense(2)])
    model.compile("adam", "mse", run_eagerly=True)

    report = tb_gradflow.explain(model, *data())

    [finding] = report.findings
    assert finding.cause == "nondiff_rounding"
    assert finding.op is not None
    assert finding.op.type == "Round"
    assert finding.source is not None
    assert finding.source.code == "return tf.round(x)"


@pytest.mark.parametrize("eager", [False, True])
def test_a_straight_through_gradient_of_the_users_own_is_no_cut(eager: bool) -> None:
    @tf.custom_gradient
    def hard(x: Any) -> Any:
        return tf.round(x), lambda upstream: upstream

    class Hard(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return hard(x)

    model = keras.Sequential([keras.Input((6,)), layers.Dense(3), Hard(), layers.Dense(2)])
    model.compile("adam", "mse", run_eagerly=eager)

    assert tb_gradflow.explain(model, *data()).healthy


def test_a_custom_gradient_that_returns_nothing_is_named() -> None:
    @tf.custom_gradient
    def blocks(x: Any) -> Any:
        return 2.0 * x, lambda upstream: None

    class Blocks(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return blocks(x)

    x = keras.Input((6,))
    model = keras.Model(x, layers.Dense(2)(Blocks()(layers.Dense(3, name="before")(x))))
    model.compile("adam", "mse", run_eagerly=True)

    report = tb_gradflow.explain(model, *data())

    assert report.variables["before/kernel"].status == "disconnected"
    assert report.findings[0].cause == "custom_gradient_wrong"


def test_a_compiled_function_inside_an_eager_step_is_looked_into() -> None:
    inner, outer = tf.Variable([1.0, 2.0], name="inner"), tf.Variable([0.3, 0.4], name="outer")

    @tf.function
    def compiled(x: Any) -> Any:
        return tf.floor(inner) * x

    def loss() -> Any:
        logging.info("eager %s", outer.numpy().shape)
        return tf.reduce_sum(compiled(outer))

    report = tb_gradflow.explain(loss, variables=[inner, outer])

    assert report.variables["inner"].status == "disconnected"
    assert report.variables["outer"].status == "connected"
    [finding] = report.findings
    assert finding.op is not None
    assert finding.op.type == "Floor"


@pytest.mark.parametrize("compilable", [True, False])
def test_a_branch_that_an_eager_step_does_not_take_is_no_trouble(compilable: bool) -> None:
    class Skips(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.first = layers.Dense(3, name="first")
            self.second = layers.Dense(3, name="second")
            self.last = layers.Dense(2, name="last")

        def call(self, x: Any) -> Any:
            hidden = self.first(x)
            if not compilable:
                logging.info(hidden.numpy())
            return self.last(tf.cond(tf.constant(False), lambda: self.second(hidden), lambda: hidden))

    model = Skips()
    x, y = data()
    for layer, size in ((model.first, 6), (model.second, 3), (model.last, 3)):
        layer.build((None, size))
    model(x)
    model.compile("sgd", "mse", run_eagerly=True)

    report = tb_gradflow.explain(model, x, y)

    assert report.healthy
    assert [finding.cause for finding in report.findings] == ["branch_not_taken"]
    assert [name.rpartition("/")[2] for name in report.findings[0].variables] == ["kernel", "bias"]


def test_an_eager_model_whose_own_compiled_step_takes_the_gradient_is_explained() -> None:
    class Compiled(models.Subclassed):
        @tf.function
        def train_step(self, batch: Any) -> Any:
            x, y = batch
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self(x, training=True) - y))
            weights = self.trainable_variables
            self.optimizer.apply(tape.gradient(loss, weights), weights)
            return {"loss": loss}

    model = Compiled()
    x, y = data()
    model(x)
    model.compile("sgd", run_eagerly=True)
    model.optimizer.build(model.trainable_variables)

    report = tb_gradflow.explain(model, x, y)

    assert report.healthy
    assert all(variable.status == "connected" for variable in report.variables.values())


def test_training_goes_on_as_if_nobody_had_looked() -> None:
    x, y = data(rows=32)

    def trained(look: bool) -> list[Any]:
        keras.utils.set_random_seed(11)
        model = keras.Sequential([keras.Input((6,)), layers.Dense(4), layers.Dropout(0.5), layers.Dense(2)])
        model.compile("adam", "mse", run_eagerly=True)
        if look:
            tb_gradflow.explain(model, x, y, batch_size=16)
        model.fit(x, y, batch_size=16, verbose=0)
        noise = [np.random.normal(), float(tf.random.normal([]))]
        return [variable.numpy() for variable in (*model.variables, *model.optimizer.variables)] + noise

    for before, after in zip(trained(look=False), trained(look=True), strict=True):
        np.testing.assert_array_equal(before, after)


def test_numpy_and_tensorflow_are_left_as_they_were() -> None:
    weight = tf.Variable([1.0, 4.0], name="weight")
    before = (np.sqrt, np.mean, tf.__internal__.EagerTensor.numpy, tf.raw_ops.Add)

    tb_gradflow.explain(lambda: tf.reduce_sum(np.sqrt(weight)), variables=[weight])

    assert (np.sqrt, np.mean, tf.__internal__.EagerTensor.numpy, tf.raw_ops.Add) == before
    assert isinstance(np.sqrt, np.ufunc)


def test_what_the_user_gets_wrong_is_raised_as_they_know_it() -> None:
    weight = tf.Variable([1.0, 2.0], name="weight")

    def loss() -> Any:
        if weight.numpy()[0] > 0:
            raise ZeroDivisionError("the user's own")
        return weight

    with pytest.raises(ZeroDivisionError, match="the user's own"):
        tb_gradflow.explain(loss, variables=[weight])


def test_a_python_function_that_fails_is_not_called_healthy() -> None:
    weight = tf.Variable([1.0, 2.0], name="weight")

    def fails(x: Any) -> Any:
        raise ZeroDivisionError("inside")

    def loss() -> Any:
        return tf.reduce_sum(tf.py_function(fails, [weight], tf.float32))

    with pytest.raises(Exception, match="inside"):
        tb_gradflow.explain(loss, variables=[weight])


def test_the_report_says_that_the_step_cannot_be_compiled() -> None:
    weight = tf.Variable([1.0, 2.0], name="weight")

    report = tb_gradflow.explain(lambda: tf.reduce_sum(weight * weight.numpy()), variables=[weight])

    assert report.healthy
    assert "cannot compile this step (NotImplementedError: numpy() is only available" in str(report).replace("\n", " ")


def test_an_inner_gradient_is_a_step_on_the_way_when_eager_as_when_compiled(tmp_path: Any) -> None:
    """What the outer tape answers counts, and what is stored after the inner gradient was computed is no update."""
    slow, fast, scale = tf.Variable(1.0, name="slow"), tf.Variable(0.0, name="fast"), tf.Variable(1.0, name="scale")

    def adapted(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                before = tf.square(slow - x)
            fast.assign(slow - 0.1 * inner.gradient(before, slow))
            after = scale * tf.square(fast - x)
        gradient = tape.gradient(after, [slow, scale])[1]
        scale.assign_sub(0.01 * gradient)
        return after

    found = {}
    for name in ("eager", "compiled"):
        tf.config.run_functions_eagerly(name == "eager")
        try:
            step = tb_gradflow.watch(str(tmp_path / name), update_freq=1)(adapted)
            for _ in range(2):
                step(tf.constant(2.0))
            step.flush()
        finally:
            tf.config.run_functions_eagerly(False)
        report = tb_gradflow.open_log(str(tmp_path / name)).report()
        statuses = {variable: report.variables[variable].status for variable in ("slow", "scale")}
        found[name] = statuses, report.findings[0].cause, report.findings[0].variables

    expected = {"slow": "disconnected", "scale": "connected"}, "variable_assign", ("slow",)
    assert found == {"eager": expected, "compiled": expected}
