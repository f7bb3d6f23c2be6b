"""Tensors from before the step, attributes that lost their variable, and variables that the step makes."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.trace.fidelity import object_graph
from tb_gradflow.trace.fidelity.object_graph import kin_of
from tb_gradflow.trace.graph.variables import Owned
from tb_gradflow.trace.protection import living_objects
from tests.trace.recording import data

X = tf.constant([0.3, -0.7, 1.9])
MATRIX = tf.random.stateless_normal([20, 10], seed=[1, 2])


@pytest.mark.parametrize(
    ("value", "compute"),
    [
        (2.3, tf.exp),
        (2.3, lambda w: float(tf.nn.softplus(w))),
        ([1.37, 0.49, 2.31], tf.nn.softmax),
        ([1.37, 0.49, 2.31], lambda w: np.sqrt(w.numpy())),
        (MATRIX, lambda w: tf.nn.l2_normalize(w, axis=0)),
        (MATRIX, tf.transpose),
        (MATRIX, lambda w: tf.gather(w, [3, 5, 7])),
        (MATRIX, lambda w: tf.concat([w, tf.zeros([2, 10])], 0)),
        (MATRIX, lambda w: tf.matmul(w, w, transpose_b=True)),
        (MATRIX, lambda w: 0.5 * tf.tanh(w / 3.0) + 1.0),
    ],
)
def test_a_tensor_computed_from_the_variable_before_the_step_is_found(
    value: Any, compute: Callable[[Any], Any]
) -> None:
    weight, other = tf.Variable(value, name="weight"), tf.Variable(0.7, name="other")
    fixed = compute(weight)

    def loss() -> Any:
        return tf.reduce_sum(tf.tanh(fixed * other))

    report = tb_gradflow.explain(loss, variables=[weight, other])

    assert report.variables["weight"].status == "disconnected"
    assert report.variables["other"].status == "connected"
    [finding] = report.findings
    assert finding.cause == "python_snapshot"
    assert finding.op is None
    assert finding.source is not None
    assert finding.source.code == "return tf.reduce_sum(tf.tanh(fixed * other))"


def test_numbers_that_anybody_would_type_count_beside_their_variable() -> None:
    class Gauss:
        def __init__(self) -> None:
            self.mean = tf.Variable([0.0, 1.0], name="mean")
            self.log_std = tf.Variable([0.0, 0.0], name="log_std")
            self.std = tf.exp(self.log_std)

        def loss(self, x: Any) -> Any:
            return tf.reduce_sum(tf.square((x - self.mean) / self.std))

    gauss = Gauss()

    report = tb_gradflow.explain(gauss.loss, args=(tf.constant([1.0, 2.5]),), variables=[gauss.mean, gauss.log_std])

    [finding] = report.findings
    assert finding.cause == "python_snapshot"
    assert finding.variables == ("log_std",)
    assert "by `tf.exp`" in finding.message
    assert "`tf.exp(log_std)`" in finding.fix


@pytest.mark.parametrize(
    ("value", "constant"),
    [
        (tf.zeros(3), tf.zeros(3)),
        (tf.ones(3), tf.ones(3)),
        (0.5, 0.25),
        ([1.0, 2.0, 3.0], tf.constant([1.0, 2.0, 3.0])),
        (tf.range(10.0), tf.range(10.0) / 10.0),
        ([1.37, 0.49, 2.31], tf.constant([0.2, 1.9, 0.3])),
    ],
)
def test_common_numbers_prove_nothing(value: Any, constant: Any) -> None:
    idle, other = tf.Variable(value, name="idle"), tf.Variable(0.7, name="other")

    report = tb_gradflow.explain(lambda: tf.reduce_sum(constant + other), variables=[idle, other])

    assert report.variables["idle"].status == "unused"
    assert [finding.cause for finding in report.findings] == ["output_not_used"]


def test_a_copy_for_comparison_is_no_finding() -> None:
    """A penalty on the distance from where the weights began."""
    weight = tf.Variable([1.37, 0.49, 2.31], name="weight")
    start = tf.identity(weight) + 0.1

    report = tb_gradflow.explain(lambda: tf.reduce_sum(tf.square(weight - start)), variables=[weight])

    assert report.findings == ()


def test_a_snapshot_in_a_layer_is_found_in_the_model() -> None:
    class Scaled(keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.log_scale = self.add_weight(name="log_scale", shape=(shape[-1],), initializer="glorot_uniform")
            self.scale = tf.exp(self.log_scale)

        def call(self, x: Any) -> Any:
            return x * self.scale

    x = keras.Input((6,))
    model = keras.Model(x, Scaled(name="scaled")(keras.layers.Dense(4, name="dense")(x)))
    model.compile("adam", "mse")

    report = tb_gradflow.explain(model, *data(outputs=4))

    assert report.variables["scaled/log_scale"].status == "disconnected"
    assert report.findings[0].cause == "python_snapshot"


def test_a_variable_that_was_overwritten_is_found() -> None:
    class Line(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = tf.Variable([1.0, 2.0, 3.0], name="w")

        def loss(self) -> Any:
            return tf.reduce_sum(tf.square(X * self.w))

    line = Line()
    weight = line.w
    line.w = line.w - 0.1

    report = tb_gradflow.explain(line.loss, variables=[weight])

    assert report.variables["w"].status == "disconnected"
    [finding] = report.findings
    assert finding.cause == "variable_rebound"
    assert "`self.w` holds a tensor" in finding.message
    assert "`line.w.assign(line.w - 0.1)` instead of `line.w = line.w - 0.1`" in finding.fix


def test_a_tensor_in_the_place_of_a_variable_is_told() -> None:
    class Line:
        w = tf.Variable([1.0, 2.0, 3.0], name="w") - 0.1
        b = tf.Variable(0.5, name="b")

    report = tb_gradflow.explain(lambda: tf.reduce_sum(tf.square(X * Line.w + Line.b)), variables=[Line.w, Line.b])

    assert [variable.status for variable in report.variables.values()] == ["disconnected", "connected"]
    [finding] = report.findings
    assert finding.cause == "variable_rebound"


class Overwriting(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.w = self.add_weight(name="w", shape=(6, 2), initializer="glorot_uniform")
        self.built = True

    def call(self, x: Any) -> Any:
        return tf.matmul(x, self.w)

    def train_step(self, batch: Any) -> Any:
        x, y = batch
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x) - y))
        self.w = self.w - 0.1 * tape.gradient(loss, self.w)
        return {"loss": loss}


@pytest.mark.parametrize("eager", [False, True])
def test_a_step_that_overwrites_its_variable_is_told_and_undone(eager: bool) -> None:
    model = Overwriting()
    model.compile(run_eagerly=eager)
    weight, before = model.w, model.w.numpy()

    report = tb_gradflow.explain(model, *data())

    [finding] = report.findings
    assert finding.cause == "variable_rebound"
    assert "from the next step on" in finding.message
    assert model.w is weight
    np.testing.assert_array_equal(model.w.numpy(), before)


@pytest.mark.parametrize("eager", [False, True])
def test_a_layer_that_the_step_makes_is_an_error(eager: bool) -> None:
    class Fresh(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.first = keras.layers.Dense(3, name="first")

        def call(self, x: Any) -> Any:
            return keras.layers.Dense(2, name="fresh")(self.first(x))

    model = Fresh()
    x, y = data()
    model(x)
    model.compile("sgd", "mse", run_eagerly=eager)

    report = tb_gradflow.explain(model, x, y)

    [finding] = report.findings
    assert finding.cause == "untracked_variable"
    assert finding.severity == "error"
    assert "the step creates them anew" in finding.message
    assert "`self.fresh = ...`" in finding.fix


def test_what_else_the_users_function_can_reach_is_put_back() -> None:
    weight, count = tf.Variable([1.0, 2.0], name="weight"), tf.Variable(0.0, name="count", trainable=False)

    def loss() -> Any:
        count.assign_add(1.0)
        return tf.reduce_sum(weight * weight.numpy())

    tb_gradflow.explain(loss, variables=[weight])

    assert float(count) == 0.0


class Rotary(tf.Module):
    """Keeps the angles of a length for the next call."""

    def __init__(self, kept: str) -> None:
        super().__init__()
        self.freqs = tf.Variable([1.0, 0.3, 0.1], name="freqs")
        self.cached: dict[int, Any] = {}
        if kept == "in a cache":
            self.cached[4] = tf.range(4.0)[:, None] * self.freqs[None, :]

    def angles(self) -> Any:
        return self.cached.get(4, OTHERS)


OTHERS = tf.range(4.0)[:, None] * tf.constant([[1.0, 0.3, 0.1]])


@pytest.mark.parametrize(
    ("kept", "cause"), [("in a cache", "python_snapshot"), ("by somebody else", "output_not_used")]
)
def test_multiples_of_the_variable_in_a_cache_of_the_object_that_has_it_were_computed_from_it(
    kept: str, cause: str
) -> None:
    rotary, scale = Rotary(kept), tf.Variable(0.7, name="scale")

    report = tb_gradflow.explain(
        lambda: tf.reduce_sum(tf.cos(rotary.angles()) * scale), variables=[rotary.freqs, scale]
    )

    assert [finding.cause for finding in report.findings] == [cause]


def test_the_processes_objects_are_searched_once_for_all_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search takes 40 ms. A recurrent layer that slices its variable in `build` had 200 such tensors in each step."""

    class Seasons(keras.Layer):
        def build(self, shape: Any) -> None:
            self.season = self.add_weight(shape=(50,), initializer="ones")
            self.scale = self.add_weight(shape=(), initializer="ones")
            self.slices = [self.season.value[place : place + 1] for place in range(50)]

        def call(self, x: Any) -> Any:
            return self.scale * sum(x * each for each in self.slices)

    searches = Mock(wraps=living_objects.holders_of)
    monkeypatch.setattr(object_graph, "holders_of", searches)
    model = keras.Sequential([keras.Input((1,)), Seasons()])
    model.compile("sgd", "mse", run_eagerly=True)

    report = tb_gradflow.explain(model, tf.ones([4, 1]), tf.zeros([4, 1]))

    [season] = [name for name in report.variables if "variable_1" not in name]
    assert report.variables[season].status == "disconnected"
    assert [finding.cause for finding in report.findings] == ["python_snapshot"]
    assert searches.call_count < 50


class Slotted:
    """Holds a tensor, and has no dictionary for it."""

    __slots__ = ("slot",)


class Keeper(Slotted):
    """Holds a variable and tensors in every way."""

    def __init__(self) -> None:
        self.variable = tf.Variable(1.0)
        self.attribute, self.slot = tf.constant(2.0), tf.constant(3.0)
        self.cache = {"of the last step": [tf.constant(4.0)]}
        self.gone = weakref.proxy(tf.Module())
        self.records: list[Any] = []
        self.records += [{"all": self.records} for _ in range(5000)]


def test_kin_are_what_the_object_of_a_variable_holds() -> None:
    keeper, other = Keeper(), tf.constant(5.0)

    kin = kin_of(Owned(keeper.variable, "variable", trainable=True, tracked=True))

    held = [keeper.attribute, keeper.slot, keeper.cache["of the last step"][0]]
    assert {id(each) for each in held} <= kin
    assert id(other) not in kin
    reference = weakref.ref(keeper)
    keeper.records.clear()
    del keeper
    assert reference() is None  # the search has left no cycle
