"""Outputs without bounds that a loss clips like probabilities."""

from __future__ import annotations

from typing import Any

import pytest

from tests.analyse.builders import FINE, Graph, Row, sized

MARGIN = 1e-7
HALF = sized(1.0, zeros=0.5)


def clipped(
    *,
    low: float = MARGIN,
    high: float = 1 - MARGIN,
    end: str = "Log",
    product: str = "MatMul",
    before: str = "",
    after: str = "",
    divided: str = "",
    weights: str = "",
    bias: bool = True,
    high_first: bool = True,
    left: Row = HALF,
    arriving: Row = FINE,
) -> list[str]:
    """The severities of what is said about the clips in `log(clip(x @ kernel + bias))`."""
    graph = Graph()
    kernel, offset = (graph.variable(each) for each in ("kernel", "bias"))
    kernel, offset = (graph.op(weights, each) if weights else each for each in (kernel, offset))
    given = graph.op(before, graph.op("MatMul", graph.variable("first"))) if before else -1
    factors = (given, kernel) if before else (kernel,)
    value = graph.op(product, *factors)
    value = graph.op("BiasAdd", value, offset) if bias else value
    value = graph.op(after, value) if after else value
    if divided:
        value = graph.op("RealDiv", value, graph.op(divided, kernel if divided == "Exp" else value))
    limits = [("Minimum", high), ("Maximum", low)]
    clips: list[int] = []
    for kind, limit in limits if high_first else reversed(limits):
        clips.append(graph.op(kind, clips[-1] if clips else value, constants={1: limit}))
    graph.gradient(value, left)
    graph.gradient(clips[-1], arriving)
    graph.target(graph.op("Mean", graph.op(end, clips[-1]), shape=()))
    for name in [each.name for each in graph.variables]:
        graph.ask(name, FINE)
    return [each.severity for each in graph.diagnose().findings if each.cause == "saturation_clip"]


@pytest.mark.parametrize("high_first", [True, False])
@pytest.mark.parametrize("details", [{}, {"after": "Relu"}, {"after": "Reshape"}, {"divided": "Sum"}, {"bias": False}])
def test_outputs_that_are_no_probabilities_are_reported(details: dict[str, Any], high_first: bool) -> None:
    assert clipped(high_first=high_first, **details) == ["warning"]


@pytest.mark.parametrize("limits", [{"low": 0.0}, {"high": 1.0}, {"low": 0.01}, {"high": 0.995}])
def test_limits_close_to_zero_and_one_are_those_of_probabilities(limits: dict[str, Any]) -> None:
    assert clipped(**limits) == ["warning"]


@pytest.mark.parametrize("limits", [{"low": -1.0}, {"low": 0.1}, {"high": 2.0}, {"high": 0.9}])
def test_other_limits_are_not(limits: dict[str, Any]) -> None:
    assert not clipped(**limits)


@pytest.mark.parametrize(
    "details",
    [
        {"after": "Sigmoid"},
        {"after": "Softmax"},
        {"before": "Softmax"},  # a matrix of probabilities, as of a hidden Markov model
        {"before": "Sigmoid"},
        {"weights": "Exp"},  # no layer either: both factors are computed
        {"weights": "Exp", "bias": False},
        {"product": "Square"},  # no layer: the values are the variables themselves
        {"divided": "Max"},
        {"divided": "Exp"},
        {"end": "Square"},  # no probability: nothing takes its logarithm
    ],
)
def test_values_that_may_have_bounds_or_need_none_are_not(details: dict[str, Any]) -> None:
    assert not clipped(**details)


@pytest.mark.parametrize(("left", "arriving"), [(FINE, FINE), (HALF, HALF)])
def test_a_step_in_which_nothing_is_clipped_is_fine(left: Row, arriving: Row) -> None:
    """Zeros that arrive, from examples with a weight of zero, are not made by the limits."""
    assert not clipped(left=left, arriving=arriving)
