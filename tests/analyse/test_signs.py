"""Which values cannot be positive."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tb_gradflow.analyse.evidence.signs import is_never_positive
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
        "-a * b of halves": lambda: graph.op("Neg", of_halves(graph, graph.op("Split", x))),
        "-complex ** 2": lambda: graph.op("Neg", graph.op("Cast", graph.op("Square", x, dtype="complex64"))),
        "-(x**2 + what an old log left out)": lambda: graph.op("Neg", graph.op("AddV2", square)),
    }
    return graph, made[shape]()


def of_halves(graph: Graph, split: int) -> int:
    """The product of both outputs of an op."""
    product = graph.op("Mul", split, split)
    first, second = graph.ops[product].inputs
    graph.ops[product] = replace(graph.ops[product], inputs=(first, replace(second, output=1)))
    return product


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
        ("-a * b of halves", False),
        ("-complex ** 2", False),
        ("-(x**2 + what an old log left out)", False),
    ],
)
def test_the_sign_is_followed_through_a_formula(shape: str, never: bool) -> None:
    graph, op = grown(shape)

    assert is_never_positive(graph.trace(), op) is never


def test_sums_of_sums_are_walked_once() -> None:
    """Two to the power of thirty ways lead through these."""
    graph = Graph()
    total = graph.op("Square", graph.op("MatMul", graph.variable("kernel")))
    for _ in range(30):
        total = graph.op("AddV2", total, total)

    far, near = graph.op("Neg", total), graph.op("Neg", total - 15)

    assert not is_never_positive(graph.trace(), far)  # no part of a formula
    assert is_never_positive(graph.trace(), near)
