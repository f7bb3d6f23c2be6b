"""Which side of a choice gets the gradient: said in shares where they are known."""

from __future__ import annotations

import pytest

from tests.analyse.builders import FINE, INF, ZERO, Graph, Row


def half(zeros: float) -> Row:
    return (*FINE[:3], zeros, *FINE[4:])


def chosen(side: Row, whole: Row = FINE, *, shape: tuple[int, ...] | None = (3,)) -> str:
    """What is said of a threshold in the condition of a `tf.where`, whose first side, of this shape, gets this
    gradient."""
    graph = Graph()
    threshold = graph.variable("threshold")
    condition = graph.op("Greater", threshold, passes="not_differentiable", dtype="bool")
    first = graph.op("Mul", graph.variable("x"), shape=shape)
    second = graph.op("Mul", graph.variable("y"))
    line = "out = tf.where(x > threshold, 2 * x, 3 * y)"
    result = graph.op("SelectV2", condition, first, second, passes=("dtype", "yes", "yes"), api="tf.where", line=line)
    graph.target(graph.op("Mean", result))
    graph.ask("threshold")
    graph.ask("x", FINE)
    graph.ask("y", FINE)
    graph.gradient(result, whole)
    graph.gradient(first, side)
    return next(each.message for each in graph.diagnose().findings if "threshold" in each.variables)


def test_the_shares_of_both_sides_are_named() -> None:
    assert "`2 * x` in 75% of the elements, `3 * y` in 25% of the elements" in chosen(half(0.25))


@pytest.mark.parametrize(("side", "told", "other"), [(FINE, "2 * x", "3 * y"), (ZERO, "3 * y", "2 * x")])
def test_a_side_that_gets_nothing_is_not_named(side: Row, told: str, other: str) -> None:
    said = chosen(side).partition("to the side that it selects:")[2]

    assert f"`{told}` in 100% of the elements" in said
    assert other not in said


@pytest.mark.parametrize(("side", "whole"), [(INF, FINE), (FINE, INF), (ZERO, ZERO)])
def test_shares_of_a_broken_or_missing_gradient_are_not_known(side: Row, whole: Row) -> None:
    assert "of the elements" not in chosen(side, whole)


@pytest.mark.parametrize("shape", [(), (1, 3), None])
def test_shares_are_not_known_where_a_side_is_broadcast(shape: tuple[int, ...] | None) -> None:
    """Its gradient is a sum, of which no element needs to be zero."""
    assert "of the elements" not in chosen(half(0.25), shape=shape)


def test_zeros_that_arrive_are_not_the_choice_of_a_side() -> None:
    assert "`2 * x` in 50% of the elements, `3 * y` in 50% of the elements" in chosen(half(0.75), half(0.5))
