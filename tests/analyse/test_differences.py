"""Scores that are compared with each other: what is added to all of them is in no difference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tb_gradflow.record.schema import Tensor
from tests.analyse.builders import FINE, ZERO, Graph, Row, sized


def compared(kind: str, *, arriving: Row, beside: bool = False) -> Graph:
    """Two views of a list of scores meet in an op."""
    graph = Graph()
    product = graph.op("MatMul", graph.variable("dense/kernel"))
    scores = graph.op("AddV2", product, graph.variable("dense/bias", shape=(1,)))
    rows, columns = graph.op("ExpandDims", scores), graph.op("ExpandDims", scores)
    loss = graph.op("Mean", graph.op("Softplus", graph.op(kind, rows, columns)))
    if beside:
        loss = graph.op("AddV2", loss, graph.op("Mean", graph.op("Square", scores)))
    for op in (product, scores, rows, columns):
        graph.gradient(op, FINE)
    graph.target(loss)
    graph.ask("dense/kernel", FINE)
    graph.ask("dense/bias", arriving)
    return graph


@pytest.mark.parametrize(("arriving", "told"), [(ZERO, "gradient is zero"), (sized(1e-9), "rounding noise")])
def test_an_offset_of_scores_that_are_compared_in_pairs_has_no_influence(arriving: Row, told: str) -> None:
    finding = compared("Sub", arriving=arriving).only_finding()

    assert (finding.cause, finding.severity) == ("shift_invariant_parameter", "info")
    assert "the difference of elements" in finding.message
    assert told in finding.message


@pytest.mark.parametrize(("kind", "beside"), [("Mul", False), ("Sub", True)])
def test_what_the_offset_is_still_in_has_another_reason_to_get_nothing(kind: str, beside: bool) -> None:
    """A product of the scores, or a penalty of theirs beside the difference."""
    finding = compared(kind, arriving=ZERO, beside=beside).only_finding()

    assert (finding.cause, finding.severity) == ("zero_gradient", "warning")


def scaled(before: tuple[int, ...] | None = (), *, one_side: bool = False, doubled: bool = False) -> Graph:
    """Scores are divided by a temperature of a shape and compared in pairs, with a margin on one side. The other side
    may also be scaled, or added to itself."""
    graph = Graph()
    temperature = graph.variable("temperature", shape=(3,) if before is None else before)
    graph.ops[temperature] = replace(graph.ops[temperature], outputs=(Tensor(before, "float32"),))
    product = graph.op("MatMul", graph.variable("dense/kernel"))
    scores = graph.op("AddV2", product, graph.variable("dense/bias", shape=(1,)))
    divided = graph.op("RealDiv", scores, temperature)
    rows, columns = graph.op("ExpandDims", divided), graph.op("ExpandDims", divided)
    rows = graph.op("AddV2", rows, constants={1: 0.2})
    columns = graph.op("Mul", columns, constants={1: 0.5}) if one_side else columns
    columns = graph.op("AddV2", columns, columns) if doubled else columns
    graph.target(graph.op("Mean", graph.op("Softplus", graph.op("Sub", rows, columns))))
    for op in (product, scores, divided, rows, columns):
        graph.gradient(op, FINE)
    graph.ask("temperature", FINE)
    graph.ask("dense/kernel", FINE)
    graph.ask("dense/bias", ZERO)
    return graph


@pytest.mark.parametrize("temperature", [(), (1, 1)])
def test_scores_that_are_divided_by_one_number_keep_a_common_offset(temperature: tuple[int, ...]) -> None:
    assert scaled(temperature).only_finding().cause == "shift_invariant_parameter"


@pytest.mark.parametrize(
    "graph",
    [scaled((3,)), scaled(None), scaled(one_side=True), scaled(doubled=True)],
    ids=["each", "any", "one", "two"],
)
def test_scores_that_are_scaled_differently_have_no_common_offset(graph: Graph) -> None:
    """Each by its own temperature, or by one of unknown shape; or only one side is, or is a sum of two."""
    assert graph.only_finding().cause == "zero_gradient"
