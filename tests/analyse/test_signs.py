"""Which values cannot be positive."""

from __future__ import annotations

import pytest

from tb_gradflow.analyse.signs import is_never_positive
from tests.analyse.builders import Graph


def grown(shape: str) -> tuple[Graph, int]:
    graph = Graph()
    x = graph.op("MatMul", graph.variable("kernel"))
    square = graph.op("Square", x)
    made = {
        "-x": lambda: graph.op("Neg", x),
        "-x**2": lambda: graph.op("Neg", square),
        "-x**2 / 0.01": lambda: graph.op("RealDiv", graph.op("Neg", square), constants={1: 0.01}),
        "-x**2 / -0.01": lambda: graph.op("RealDiv", graph.op("Neg", square), constants={1: -0.01}),
        "x**2 * -3": lambda: graph.op("Mul", square, constants={1: -3.0}),
        "-x * x": lambda: graph.op("Neg", graph.op("Mul", x, x)),
        "-(x**2 + 1)": lambda: graph.op("Neg", graph.op("AddV2", square, constants={1: 1.0}, input_count=2)),
        "-(x**2 + x)": lambda: graph.op("Neg", graph.op("AddV2", square, x, input_count=2)),
        "-(x**2 + data)": lambda: graph.op("Neg", graph.op("AddV2", square, input_count=2)),
        "x - max(x)": lambda: graph.op("Sub", x, graph.op("StopGradient", graph.op("Max", x))),
        "x - max(y)": lambda: graph.op("Sub", x, graph.op("Max", square)),
    }
    return graph, made[shape]()


@pytest.mark.parametrize(
    ("shape", "never"),
    [
        ("-x", False),
        ("-x**2", True),
        ("-x**2 / 0.01", True),
        ("-x**2 / -0.01", False),
        ("x**2 * -3", True),
        ("-x * x", True),
        ("-(x**2 + 1)", True),
        ("-(x**2 + x)", False),
        ("-(x**2 + data)", False),
        ("x - max(x)", True),
        ("x - max(y)", False),
    ],
)
def test_the_sign_is_followed_through_a_formula(shape: str, never: bool) -> None:
    graph, op = grown(shape)

    assert is_never_positive(graph.trace(), op) is never
