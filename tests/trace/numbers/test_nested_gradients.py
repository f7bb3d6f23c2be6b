"""`explain` measures the tensors inside of functions and branches, and names the op in there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tb_gradflow
from tb_gradflow.record.report import Finding
from tb_gradflow.record.schema import GRADIENT_STATISTICS
from tb_gradflow.trace.explain.one_step import explain_function, explain_model

Function = Callable[[Any, Any], Any]

X = tf.constant(np.random.RandomState(0).rand(8, 4), tf.float32)


def nested(function: Function) -> Function:
    compiled: Function = tf.function(function)
    return compiled


def twice_nested(function: Function) -> Function:
    inner = nested(function)
    return nested(lambda h, w: 1.5 * inner(h, w))


def in_a_branch(function: Function) -> Function:
    return lambda h, w: tf.cond(tf.reduce_sum(h) > 0, lambda: function(h, w), lambda: h)


def in_one_of_several(function: Function) -> Function:
    return lambda h, w: tf.switch_case(tf.constant(1), [lambda: h, lambda: function(h, w)])


PLACES = [nested, twice_nested, in_a_branch, in_one_of_several]


def saturated(h: Any, w: Any) -> Any:
    return h * tf.sigmoid(w * 1000 + 1000)


def dead(h: Any, w: Any) -> Any:
    return h + tf.nn.relu(-w * w - 1)


def clipped(h: Any, w: Any) -> Any:
    return h * tf.clip_by_value(w + 100, 0, 1)


def rooted(h: Any, w: Any) -> Any:
    return h + tf.sqrt(tf.square(w * 0.0))


ANYWHERE = [(place, saturated, "saturation_sigmoid", "Sigmoid") for place in PLACES]
ANYTHING = [(dead, "dead_relu", "Relu"), (clipped, "saturation_clip", "Minimum"), (rooted, "sqrt_at_zero", "Sqrt")]


@pytest.mark.parametrize(
    ("place", "function", "cause", "op"),
    [*ANYWHERE, *((place, *what) for place in (nested, in_a_branch) for what in ANYTHING)],
)
def test_the_op_inside_is_named_with_its_line(
    place: Callable[[Function], Function], function: Any, cause: str, op: str
) -> None:
    finding = the_finding(place(function))

    assert (finding.cause, finding.op.type if finding.op is not None else None) == (cause, op)
    assert finding.source is not None
    assert finding.source.line == function.__code__.co_firstlineno + 1


def the_finding(function: Function) -> Finding:
    """The finding on `w`, which goes into the function."""
    w, v = tf.Variable(0.7, name="w"), tf.Variable(tf.ones([4]), name="v")
    report = tb_gradflow.explain(lambda x: tf.reduce_mean((function(x * v, w) - 2) ** 2), args=(X,), variables=[w, v])
    [finding] = [finding for finding in report.findings if "w" in finding.variables]
    return finding


def measured(loss: Callable[[], Any], variables: list[Any]) -> dict[str, dict[str, float]]:
    """Statistics of the gradients of all tensors that got one, by the name of their op."""
    seen = explain_function(loss, (), variables)
    assert seen.record is not None
    rows = np.frombuffer(seen.record.gradients, "<f4").reshape(-1, len(GRADIENT_STATISTICS))
    return {
        seen.trace.ops[each.op].name: dict(zip(GRADIENT_STATISTICS, rows[each.row].tolist(), strict=True))
        for each in seen.trace.tensor_gradients
        if each.row is not None
    }


def test_what_is_measured_inside_of_a_function_is_the_gradient() -> None:
    w = tf.Variable([0.3, -0.8, 0.0], name="w")

    def loss() -> Any:
        return tf.reduce_sum(tf.sin(tf.function(lambda w: tf.nn.relu(w * 3.0, name="here") * 2.0)(w + 0.0)))

    with tf.GradientTape() as tape:
        here = tf.nn.relu(w * 3.0)
        tape.watch(here)
        value = tf.reduce_sum(tf.sin(here * 2.0))
    expected = tape.gradient(value, here).numpy()

    [row] = [row for name, row in measured(loss, [w]).items() if name.endswith("/here")]

    assert row["norm"] == pytest.approx(np.linalg.norm(expected))
    assert row["max_abs"] == pytest.approx(np.abs(expected).max())
    assert row["mean_abs"] == pytest.approx(np.abs(expected).mean())
    assert row["zero_fraction"] == 0


def test_a_branch_that_was_not_taken_has_no_gradient() -> None:
    w = tf.Variable(0.5, name="w")
    rows = measured(
        lambda: tf.cond(w > 0, lambda: tf.multiply(w, 3.0, name="yes"), lambda: tf.multiply(w, 2.0, name="no")), [w]
    )

    [taken] = [row["norm"] for name, row in rows.items() if name.endswith("/yes")]
    [other] = [row["norm"] for name, row in rows.items() if name.endswith("/no")]

    assert taken == 1.0
    assert np.isnan(other)


def test_of_a_function_that_is_called_twice_nothing_is_told() -> None:
    """Its gradients are one function as well, and nobody could tell apart what arrived in which call."""
    w, v = tf.Variable(0.5, name="w"), tf.Variable(0.5, name="v")
    flat = tf.function(lambda value, scale: tf.sigmoid(value * scale, name="here"))
    rows = measured(lambda: flat(w, tf.constant(1.0)) + flat(v, tf.constant(1e6)), [w, v])

    assert rows
    assert not [name for name in rows if name.endswith("/here")]


def test_of_a_loop_nothing_is_told() -> None:
    """Nor of a function that is called in its rounds."""
    w = tf.Variable(0.5, name="w")
    flat = tf.function(lambda value: tf.sigmoid(value * w, name="here"))

    def loss() -> Any:
        [last] = tf.while_loop(lambda x: x < 2.0, lambda x: (x + 1.0 + flat(x),), [tf.constant(0.0)])
        return 2.0 * last

    rows = measured(loss, [w])

    assert rows
    assert not [name for name in rows if name.endswith("/here")]


def test_what_a_gradient_meets_in_a_function_is_no_part_of_a_jacobian_that_is_taken_after_it() -> None:
    keras.utils.set_random_seed(1)
    model = TakesBoth()
    model.compile("sgd")

    trace = explain_model(model, np.ones((4, 2), "float32"), np.ones(4, "float32"), None, None).trace

    met = {(trace.targets[each.target].name, trace.ops[each.op].type) for each in trace.tensor_gradients}
    assert ("value", "Sin") in met
    assert not [each for each in met if each[0] == "doubled"]


@tf.function
def sine(x: Any) -> Any:
    return tf.sin(x) * x


class TakesBoth(keras.Model):
    """A gradient through a function, and a Jacobian."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = self.add_weight(shape=(2,), initializer="ones")

    def call(self, x: Any) -> Any:
        return x * self.scale

    def train_step(self, data: Any) -> Any:
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(sine(self.scale * tf.reduce_mean(data[0], 0)))
        self.scale.assign_sub(0.1 * tape.gradient(value, self.scale.value))
        with tf.GradientTape() as tape:
            doubled = self.scale * 2.0
        self.scale.assign_sub(0.1 * tf.linalg.diag_part(tape.jacobian(doubled, self.scale.value)))
        return {"loss": value}
