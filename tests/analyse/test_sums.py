"""Values that are used twice, and what shows that the gradients of both uses cancel."""

from __future__ import annotations

import pytest

from tests.analyse.builders import FINE, ZERO, Graph, Row, sized


def used_twice(
    *,
    shape: tuple[int, ...] | None = (3,),
    kind: str = "AddV2",
    other: Row | None = None,
    left: Row = ZERO,
    arriving: Row = FINE,
) -> tuple[str, ...]:
    """The causes named for a value `x`, in `(x + noise) + f(x)`; the gradient of `f(x)` may not be recorded."""
    graph = Graph()
    x = graph.variable("x")
    first = graph.op(kind, x, shape=shape)
    second = graph.op("Exp", x)
    graph.gradient(first, arriving)
    if other is not None:
        graph.gradient(second, other)
    graph.target(graph.op("Mean", graph.op("Mul", first, second), shape=()))
    graph.ask("x", left)
    return tuple(each.cause for each in graph.diagnose().findings)


@pytest.mark.parametrize("kind", ["AddV2", "Add", "Sub"])
def test_what_a_sum_passes_on_and_nothing_is_left_of_was_cancelled(kind: str) -> None:
    assert used_twice(kind=kind) == ("gradient_cancellation",)


@pytest.mark.parametrize("other", [FINE, sized(0.3)])
def test_two_gradients_that_are_both_recorded_cancel(other: Row) -> None:
    assert used_twice(kind="Neg", other=other) == ("gradient_cancellation",)


def test_what_another_op_passes_on_may_be_zero_by_itself() -> None:
    """A sum over a broadcast axis, for example, or a function that is flat."""
    assert used_twice(shape=(5, 3)) == ("zero_gradient",)
    assert used_twice(kind="Exp") == ("zero_gradient",)


def test_a_shape_that_is_not_known_is_taken_for_that_of_the_value() -> None:
    assert used_twice(shape=None) == ("gradient_cancellation",)


def test_a_value_added_to_itself_cancels_nothing() -> None:
    graph = Graph()
    x = graph.variable("x")
    twice = graph.op("Sub", x, x)
    graph.gradient(twice, FINE)
    graph.target(graph.op("Mean", graph.op("Mul", twice, graph.op("Exp", x)), shape=()))
    graph.ask("x", ZERO)

    assert [each.cause for each in graph.diagnose().findings] == ["zero_gradient"]
