"""A value that is compared with what the same network makes of the same input."""

from __future__ import annotations

import pytest

from tb_gradflow.record.schema import Layer
from tests.analyse.builders import FINE, ZERO, Graph, Row, sized


def compared(kernel: Row, bias: Row, second: Row = FINE) -> Graph:
    """A layer that is called twice, and the difference of what it makes; `second` is what the second call gets."""
    graph = Graph()
    sides: list[int] = []
    for name, row in (("layer", FINE), ("layer_1", second)):
        graph.layers.append(Layer(name, "layer", "Dense"))
        weights = [graph.read("w/kernel"), graph.read("w/bias")] if sides else []
        weights = weights or [graph.variable("w/kernel"), graph.variable("w/bias")]
        product = graph.op("MatMul", weights[0], name=f"{name}/MatMul")
        side = graph.op("BiasAdd", product, weights[1], name=f"{name}/BiasAdd")
        sides.append(side)
        for op in (weights[1], product, side):
            graph.gradient(op, row)
    difference = graph.op("Sub", *sides, api="-", line="ratio = tf.exp(new - old)")
    graph.gradient(difference, FINE)
    graph.target(graph.op("Mean", difference))
    graph.ask("w/kernel", kernel)
    graph.ask("w/bias", bias)
    return graph


def test_both_sides_being_the_same_is_an_error_and_no_matter_of_an_offset() -> None:
    finding = compared(ZERO, ZERO).only_finding()

    assert (finding.cause, finding.severity) == ("gradient_cancellation", "error")
    assert set(finding.variables) == {"w/kernel", "w/bias"}
    assert finding.op is not None
    assert finding.op.type == "Sub"
    assert finding.fix.startswith("Stop the gradient of one side: `tf.stop_gradient(old)`")


def test_rounding_noise_is_no_gradient_either() -> None:
    finding = compared(sized(1e-9), sized(1e-9)).only_finding()

    assert (finding.cause, finding.severity) == ("gradient_cancellation", "error")


def test_an_offset_on_both_sides_is_harmless_while_the_weights_learn() -> None:
    finding = compared(FINE, ZERO).only_finding()

    assert (finding.cause, finding.severity) == ("shift_invariant_parameter", "info")


def test_ways_on_which_different_gradients_arrive_are_not_the_same_computation() -> None:
    causes = {finding.severity for finding in compared(ZERO, ZERO, second=sized(0.1)).diagnose().findings}

    assert "error" not in causes


@pytest.mark.parametrize(
    ("kind", "times", "constant", "blamed"),
    [
        ("Square", 1, None, True),
        ("Abs", 1, None, True),
        ("Mul", 2, None, True),
        ("Pow", 1, 2.0, True),
        ("Pow", 1, 1.0, False),
        ("Exp", 1, None, False),
    ],
)
def test_two_equal_views_are_seen_where_their_difference_is_squared(
    kind: str, times: int, constant: float | None, blamed: bool
) -> None:
    graph = Graph()
    kernel = graph.variable("kernel")
    left, right = graph.op("MatMul", kernel), graph.op("MatMul", kernel)
    difference = graph.op("Sub", left, right)
    constants = {} if constant is None else {1: constant}
    square = graph.op(kind, *[difference] * times, constants=constants)
    for op, row in ((left, ZERO), (right, ZERO), (difference, ZERO), (square, FINE)):
        graph.gradient(op, row)
    graph.target(graph.op("Mean", square))
    graph.ask("kernel", ZERO)

    finding = graph.only_finding()

    assert ((finding.cause, finding.culprit) == ("gradient_cancellation", square)) is blamed
