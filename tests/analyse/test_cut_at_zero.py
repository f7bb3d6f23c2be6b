"""Logarithms and divisions that a ReLU gives exact zeros, inside of functions that are none of the user's."""

from __future__ import annotations

import math

import pytest

from tb_gradflow.analyse.evidence.signs import is_never_positive, relu_behind
from tb_gradflow.record.schema import Layer
from tests.analyse.builders import NAN, Graph


def density(scale: str, *, line: str | None = None) -> Graph:
    """A density whose scale is the output of a layer, added up in a `reduce_logsumexp`: NaN from there on."""
    graph = Graph()
    graph.layers.append(Layer("scale", "scale", "Dense"))
    kernel, shift = graph.variable("scale/kernel"), graph.variable("shift/kernel")
    made = graph.op(scale, graph.op("MatMul", kernel), name=f"scale/{scale}")
    part = graph.op("SplitV", graph.op("ConcatV2", made, graph.op("MatMul", shift)))
    other = graph.op("LogSoftmax", graph.op("MatMul", graph.variable("mix/kernel")))
    taken = graph.op("Log", graph.op("Abs", part), line=line, api="tf.math.log" if line else None)
    terms = graph.op("AddV2", other, taken)
    largest = graph.op(
        "StopGradient", graph.op("SelectV2", graph.op("Max", terms), first=1), passes="not_differentiable"
    )
    exponential = graph.op("Exp", graph.op("Sub", terms, largest))
    total = graph.op("Log", graph.op("Sum", exponential))
    for op in range(total):
        graph.gradient(op, NAN)
    graph.gradient(total, (1.0, 0.5, 0.1, 0.0, 0.0, 0.0))
    graph.target(graph.op("Mean", total), loss=math.nan)
    for name in ("scale/kernel", "shift/kernel", "mix/kernel"):
        graph.ask(name, NAN)
    return graph


def test_a_scale_that_a_relu_makes_is_blamed_and_its_layer_named() -> None:
    finding = density("Relu").only_finding()

    assert finding.cause == "log_zero"
    assert "in layer `scale`" in finding.message
    assert finding.fix.startswith('Make the input positive: use `activation="softplus"`')


def test_where_the_users_line_has_the_logarithm_that_is_what_to_change() -> None:
    finding = density("Relu", line="score = tf.math.log(scale)").only_finding()

    assert "`tf.math.log(tf.maximum(scale, 1e-7))`" in finding.fix
    assert "in layer `scale`" in finding.message


def test_a_positive_scale_is_not_accused_of_zeros() -> None:
    assert "exactly zero wherever" not in density("Softplus").diagnose().findings[0].message


def test_the_exponential_of_a_sum_of_exponentials_never_overflows() -> None:
    graph = density("Relu")
    trace = graph.trace()
    [exponential] = [place for place, op in enumerate(trace.ops) if op.type == "Exp"]

    assert is_never_positive(trace, trace.ops[exponential].inputs[0].op)


@pytest.mark.parametrize(("kind", "place", "found"), [("RealDiv", 1, True), ("RealDiv", 0, False), ("Sqrt", 0, False)])
def test_only_what_must_not_be_zero_counts(kind: str, place: int, found: bool) -> None:
    graph = Graph()
    relu = graph.op("Relu", graph.op("MatMul", graph.variable("kernel")))
    op = graph.op(kind, relu, first=place)

    assert (relu_behind(graph.trace(), op) == relu) is found


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "s = tf.nn.relu(raw)",
            "use `tf.nn.softplus(raw) + 1e-6` instead of `tf.nn.relu(raw)`. If the divisor may rightly be",
        ),
        (None, 'use `activation="softplus"` instead of `tf.nn.relu`, and add `1e-6`. If the divisor may rightly be'),
    ],
)
def test_a_divisor_is_made_positive_where_it_is_made(line: str | None, told: str) -> None:
    """To divide safely leaves the logarithm beside it without a value, and a scale of zero without a slope."""
    graph = Graph()
    scale = graph.op("Relu", graph.variable("kernel"), api="tf.nn.relu", line=line)
    error = graph.op("RealDiv", scale, first=1, api="/", line="z = (y - mean) / s")
    graph.target(graph.op("Mean", graph.op("Square", error)), loss=math.nan)
    graph.ask("kernel", NAN)
    for op in range(error + 1):
        graph.gradient(op, NAN)

    finding = graph.only_finding()

    assert finding.cause == "zero_over_zero"
    assert told in finding.fix
    assert "divide safely: `tf.math.divide_no_nan(y - mean, s)`." in finding.fix
