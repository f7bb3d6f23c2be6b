"""Values that are used twice, and what shows that the gradients of both uses cancel."""

from __future__ import annotations

import pytest

from tests.analyse.builders import FINE, ZERO, Graph, Row, sized


def used_twice(
    *,
    given: tuple[int, ...] = (3,),
    shape: tuple[int, ...] | None = (3,),
    kind: str = "AddV2",
    other: Row | None = None,
    left: Row = ZERO,
    arriving: Row = FINE,
) -> tuple[str, ...]:
    """The causes named for a value `x`, in `(x + noise) + f(x)`; the gradient of `f(x)` may not be recorded."""
    graph = Graph()
    x = graph.variable("x", shape=given)
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


def test_what_is_left_of_a_large_gradient_is_noise_but_not_of_a_small_one() -> None:
    assert used_twice(left=sized(1e-9)) == ("gradient_cancellation",)
    assert "gradient_cancellation" not in used_twice(left=sized(1e-9), arriving=sized(1e-6))
    assert used_twice(kind="Neg", other=FINE, left=sized(1e-9)) == ("gradient_cancellation",)
    assert "gradient_cancellation" not in used_twice(kind="Neg", other=sized(1e-6), left=sized(1e-9))


@pytest.mark.parametrize("other", [FINE, sized(0.3)])
def test_two_gradients_that_are_both_recorded_cancel(other: Row) -> None:
    assert used_twice(kind="Neg", other=other) == ("gradient_cancellation",)


def test_what_another_op_passes_on_may_be_zero_by_itself() -> None:
    """A sum over a broadcast axis, for example, or a function that is flat."""
    assert used_twice(shape=(5, 3)) == ("zero_gradient",)
    assert used_twice(kind="Exp") == ("zero_gradient",)


@pytest.mark.parametrize(("given", "shape"), [((3,), None), ((-1, 3), (-1, 3)), ((3,), (1, 3))])
def test_a_sum_that_may_have_the_shape_of_the_value_is_taken_to_broadcast_nothing(
    given: tuple[int, ...], shape: tuple[int, ...] | None
) -> None:
    assert used_twice(given=given, shape=shape) == ("gradient_cancellation",)


@pytest.mark.parametrize(("given", "shape"), [((), (-1, -1)), ((3,), (-1, 3)), ((1, 3), (-1, 3))])
def test_a_value_that_is_broadcast_to_a_batch_of_unknown_size_may_get_zero_from_it(
    given: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    assert used_twice(given=given, shape=shape) == ("zero_gradient",)


def test_a_value_added_to_itself_cancels_nothing() -> None:
    graph = Graph()
    x = graph.variable("x")
    twice = graph.op("Sub", x, x)
    graph.gradient(twice, FINE)
    graph.target(graph.op("Mean", graph.op("Mul", twice, graph.op("Exp", x)), shape=()))
    graph.ask("x", ZERO)

    assert [each.cause for each in graph.diagnose().findings] == ["zero_gradient"]


def used_inside(*kinds: str, below: bool = False, recorded: tuple[bool, ...] = (True, True)) -> tuple[str, ...]:
    """The causes named for a kernel whose product is used by two ops, and gets a gradient of zero. `below`: as the
    divisor of a quotient."""
    graph = Graph()
    product = graph.op("MatMul", graph.variable("kernel"))
    users = [graph.op(kind, product, first=int(below and kind == "RealDiv")) for kind in kinds]
    graph.gradient(product, ZERO)
    for user, is_recorded in zip(users, recorded, strict=True):
        if is_recorded:
            graph.gradient(user, FINE)
    graph.target(graph.op("Mean", graph.op("Mul", *users), shape=()))
    graph.ask("kernel", ZERO)
    return tuple(each.cause for each in graph.diagnose().findings)


@pytest.mark.parametrize("kinds", [("Neg", "Reshape"), ("RealDiv", "Neg"), ("AddV2", "Sub"), ("AddV2", "Exp")])
def test_a_value_inside_the_graph_cancels_where_the_whole_gradient_comes_back(kinds: tuple[str, str]) -> None:
    assert used_inside(*kinds) == ("gradient_cancellation",)


def test_a_sum_alone_shows_it_if_the_other_use_was_not_recorded() -> None:
    assert used_inside("AddV2", "Exp", recorded=(True, False)) == ("gradient_cancellation",)


@pytest.mark.parametrize(
    ("kinds", "below"), [(("Exp", "Square"), False), (("Neg", "Exp"), False), (("RealDiv", "Neg"), True)]
)
def test_an_op_that_scales_the_gradient_may_have_made_it_zero(kinds: tuple[str, str], below: bool) -> None:
    assert "gradient_cancellation" not in used_inside(*kinds, below=below)
