"""Remedies that fit what the user wrote: which value has to be safe, what a rank is, what a straight-through keeps."""

from __future__ import annotations

import pytest

from tb_gradflow.record.report import Finding
from tests.analyse.builders import FINE, NAN, Graph, sized


def hidden_division(line: str) -> Finding:
    graph = Graph()
    total = graph.op("Sum", graph.variable("table"))
    graph.gradient(total, NAN)
    graph.gradient(1, NAN)
    mean = graph.op("RealDiv", total, line=line)
    graph.gradient(mean, sized(0.1, zeros=0.4))
    chosen = graph.op("SelectV2", mean, first=1)
    graph.gradient(chosen, FINE)
    graph.target(graph.op("Mean", chosen), loss=0.5)
    graph.ask("table", NAN)
    return graph.only_finding()


@pytest.mark.parametrize(
    ("line", "safe", "hidden"),
    [
        ("m = tf.reduce_sum(e * m, 1) / tf.reduce_sum(m, 1)", "tf.reduce_sum(m, 1)", "tf.reduce_sum(e * m, 1) / safe"),
        ("m = total / tf.sqrt(v)", "v", "total / tf.sqrt(safe)"),
        ("m = total / n", "n", "total / safe"),
    ],
)
def test_of_a_division_that_a_where_hides_the_divisor_is_made_safe(line: str, safe: str, hidden: str) -> None:
    finding = hidden_division(line)

    assert finding.cause == "where_inactive_branch"
    assert f"`safe = tf.where(ok, {safe}, 1.0)`, then `tf.where(ok, {hidden}, other)`" in finding.fix


@pytest.mark.parametrize(("kind", "words"), [("Angle", "0 + 0j"), ("Atan2", "two zeros")])
def test_the_angle_of_zero_is_zero_over_zero(kind: str, words: str) -> None:
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"))
    graph.gradient(product, NAN)
    angle = graph.op(kind, product, api="tf.math.angle", line="phase = tf.math.angle(z)")
    graph.gradient(angle, FINE)
    graph.target(graph.op("Mean", angle))
    graph.ask("kernel", NAN)

    finding = graph.only_finding()

    assert finding.cause == "zero_over_zero"
    assert words in finding.message
    assert "divide_no_nan" not in finding.fix


def argsorted(*, gathers: bool, line: str = "order = tf.argsort(v)") -> Finding:
    graph = Graph()
    order = graph.op("TopKV2", graph.variable("v"), passes="yes", dtype="int32", api="tf.argsort", line=line)
    if gathers:
        graph.target(graph.op("Mean", graph.op("GatherV2", order, first=1, passes="none")))
    else:
        again = graph.op("TopKV2", order, passes="dtype", dtype="int32", api="tf.argsort", line="r = tf.argsort(order)")
        graph.target(graph.op("Mean", graph.op("Cast", again, passes="dtype")))
    graph.ask("v")
    return graph.only_finding()


def test_whoever_gathers_by_an_order_is_told_to_sort() -> None:
    assert argsorted(gathers=True).fix == "Sort the values, which is differentiable: `tf.sort(v)`."


def test_whoever_computes_with_an_order_is_told_to_rank_softly() -> None:
    assert "tf.sigmoid((v[..., :, None] - v[..., None, :]) / 0.1)" in argsorted(gathers=False).fix
    down = argsorted(gathers=False, line="order = tf.argsort(v, direction='DESCENDING')")
    assert "tf.sigmoid((v[..., None, :] - v[..., :, None]) / 0.1)" in down.fix


def straight_through(*, rounds: bool, kept: bool = True) -> Finding:
    """`x + stop_gradient(q - x)`, of which the step size is in q alone."""
    graph = Graph()
    x, step = graph.variable("x"), graph.variable("step")
    q = graph.op("Mul", x, step)
    if rounds:
        q = graph.op("Mul", graph.op("Round", q, passes="none", api="tf.round", line="q = tf.round(x / s) * s"), step)
    line = "return x + tf.stop_gradient(q - x)"
    stopped = graph.op(
        "StopGradient", graph.op("Sub", q, x), passes="not_differentiable", api="tf.stop_gradient", line=line
    )
    graph.target(graph.op("Mean", graph.op("AddV2", graph.read("x") if kept else graph.variable("y"), stopped)))
    graph.ask("step")
    return graph.only_finding()


def test_a_scale_inside_a_straight_through_is_taken_out_of_it() -> None:
    finding = straight_through(rounds=True)

    assert "hands the gradient to `x` alone" in finding.message
    assert "On another way `tf.round` (model.py:17) lets no gradient through either." in finding.message
    assert "around the rounding and nothing else" in finding.fix


def test_a_codebook_inside_a_straight_through_is_given_a_loss() -> None:
    assert "`q - tf.stop_gradient(x)`" in straight_through(rounds=False).fix


def test_a_stop_gradient_that_something_else_is_added_to_is_no_straight_through() -> None:
    assert "alone" not in straight_through(rounds=False, kept=False).message


def test_what_a_function_stops_inside_for_itself_is_not_called_a_cut() -> None:
    graph = Graph()
    x = graph.variable("x")
    inside = graph.op("StopGradient", x, passes="not_differentiable", api="keras.ops.layer_normalization")
    rounded = graph.op("Round", x, passes="none", api="tf.round", line="r = tf.round(x)")
    graph.target(graph.op("AddV2", inside, rounded))
    graph.ask("x")

    finding = graph.only_finding()

    assert finding.cause == "nondiff_rounding"
    assert "either" not in finding.message


def test_what_ends_a_loop_is_not_blended() -> None:
    graph = Graph()
    less = graph.op("Less", graph.variable("end"), passes="not_differentiable", dtype="bool", line="return t < end")
    graph.target(graph.op("Mean", graph.op("While", less, first=1, passes="dtype")))
    graph.ask("end")

    finding = graph.only_finding()

    assert finding.cause == "predicate_only"
    assert "only ends a loop" in finding.message
    assert "fixed number of rounds" in finding.fix
