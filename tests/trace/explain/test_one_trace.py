"""`explain` traces a step once, as TensorFlow does without it, and runs what it made from that trace on copies."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.record.schema import GRADIENT_STATISTICS
from tb_gradflow.trace.explain.explanation import Explained
from tb_gradflow.trace.explain.one_step import explain_function, explain_model

X = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")


class Compiled(keras.layers.Layer):
    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dense = keras.layers.Dense(units)

    @tf.function
    def call(self, x: Any) -> Any:
        return tf.nn.relu(self.dense(x))


def compiled_model() -> keras.Model:
    keras.utils.set_random_seed(0)
    layers = [keras.Input((3,)), Compiled(4, name="block"), keras.layers.Dense(1, name="out")]
    model = keras.Sequential(layers, name="m")
    model.compile("sgd", "mse")
    return model


def norms(seen: Explained) -> dict[str, float | None]:
    """The norm of the gradient of each variable, by its name."""
    assert seen.record is not None
    rows = np.frombuffer(seen.record.gradients, "<f4").reshape(-1, len(GRADIENT_STATISTICS))
    return {
        seen.trace.variables[each.variable].name: None if each.row is None else float(rows[each.row, 0])
        for each in seen.trace.variable_gradients
    }


def test_a_function_that_was_compiled_before_is_explained_as_it_trains() -> None:
    """Keras compiled it while it built the model, with its initial values in place of its variables."""
    model = compiled_model()
    before = [weight.numpy() for weight in model.layers[0].weights]

    seen = explain_model(model, X, X[:, :1], None, None)

    found = norms(seen)
    assert found["m/block/dense/kernel"] is None
    assert found["m/out/kernel"] is not None
    model.fit(X, X[:, :1], verbose=0)
    assert all(np.array_equal(*each) for each in zip(before, model.layers[0].get_weights(), strict=True))


def test_a_step_is_traced_once_and_functions_in_it_keep_their_traces() -> None:
    w = tf.Variable([1.0, 2.0, 3.0], name="w")
    traced: list[str] = []

    @tf.function
    def inner(x: Any) -> Any:
        traced.append("inner")
        return tf.sin(x * w)

    def loss(x: Any) -> Any:
        traced.append("loss")
        return tf.reduce_mean(inner(x) ** 2)

    explain_function(loss, (tf.constant(X),), [w])

    assert traced == ["loss", "inner"]
    assert inner.experimental_get_tracing_count() == 0
    inner(tf.constant(X))
    assert inner.experimental_get_tracing_count() == 1
    explain_function(loss, (tf.constant(X),), [w])
    assert traced == ["loss", "inner", "inner", "loss"]
    assert inner.experimental_get_tracing_count() == 1


def test_what_a_function_has_trained_before_does_not_hide_what_is_inside() -> None:
    w = tf.Variable([1.0, 2.0, 3.0], name="w")
    inner = tf.function(lambda x: tf.sin(x * w, name="here"))

    def train() -> Any:
        with tf.GradientTape() as tape:
            value = tf.reduce_mean(inner(tf.constant(X)) ** 2)
        return tape.gradient(value, w)

    expected = tf.function(train)()
    seen = explain_function(lambda x: tf.reduce_mean(inner(x) ** 2), (tf.constant(X),), [w])
    again = tf.function(train)()

    inside = {seen.trace.ops[each.op].name for each in seen.trace.tensor_gradients if each.row is not None}
    assert any(name.endswith("/here") for name in inside)
    assert norms(seen)["w"] == pytest.approx(float(tf.norm(expected)), rel=1e-6)
    assert np.array_equal(expected, again)


@pytest.mark.parametrize("factor", [1.0, np.nan])
def test_what_a_step_does_besides_computing_happens_once(factor: float) -> None:
    """Even where its forward pass is measured too."""
    w, count = tf.Variable(2.0, name="w"), tf.Variable(0, trainable=False)
    seen: list[float] = []

    def noted(value: Any) -> Any:
        seen.append(float(value))
        return value

    def loss() -> Any:
        count.assign_add(1)
        [value] = tf.numpy_function(noted, [tf.random.uniform([])], [tf.float32])
        return factor * w * tf.stop_gradient(tf.reshape(value, []))

    found = explain_function(loss, (), [w])

    assert len(seen) == 1
    assert (w.numpy(), count.numpy()) == (2.0, 0)
    assert found.record is not None
    assert found.record.values is not None
    assert bool(found.record.values.values) == np.isnan(factor)
    if not np.isnan(factor):
        assert norms(found)["w"] == pytest.approx(seen[0], rel=1e-6)


def test_it_draws_what_the_next_step_draws() -> None:
    w = tf.Variable(2.0, name="w")

    def loss() -> Any:
        return w * tf.random.uniform([]) + w * tf.random.normal([], seed=3)

    def step() -> Any:
        with tf.GradientTape() as tape:
            value = loss()
        return tape.gradient(value, w)

    tf.random.set_seed(5)
    seen = explain_function(loss, (), [w])

    assert norms(seen)["w"] == pytest.approx(abs(float(tf.function(step)())), rel=1e-6)


def test_a_branch_that_is_not_taken_does_not_hide_the_values() -> None:
    w = tf.Variable(0.0, name="w")

    def loss() -> Any:
        noise = tf.cond(w > 1.0, lambda: tf.random.uniform([]), lambda: tf.constant(1.0))
        return tf.math.log(w * noise)

    found = explain_function(loss, (), [w])

    assert found.record is not None
    assert found.record.values is not None


def test_a_loss_of_a_variable_as_it_is_can_be_explained() -> None:
    w = tf.Variable(3.0, name="w")

    assert norms(explain_function(lambda: w, (), [w])) == {"w": 1.0}
    assert "Healthy" in str(tb_gradflow.explain(lambda: w, args=(), variables=[w]))


def test_a_step_that_is_a_function_and_has_trained_before_is_traced_anew() -> None:
    """Nobody saw the gradients that its trace takes."""

    class Trained(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.dense(x)

        @tf.function
        def train_step(self, batch: Any) -> Any:
            x, y = batch
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x) - y) ** 2)
            weights = self.trainable_variables
            self.optimizer.apply(tape.gradient(loss, weights), weights)
            return {"loss": loss}

    model = Trained()
    model.compile("sgd")
    model.fit(X, X[:, :1], verbose=0)
    before = model.get_weights()

    report = tb_gradflow.explain(model, X, X[:, :1])

    assert report.healthy
    assert all(np.array_equal(*each) for each in zip(before, model.get_weights(), strict=True))
