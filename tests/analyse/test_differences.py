"""Scores that are compared with each other: what is added to all of them is in no difference."""

from __future__ import annotations

import pytest

from tests.analyse.builders import FINE, ZERO, Graph, Row, sized


def compared(kind: str, *, arriving: Row, beside: bool = False, factor: tuple[int, ...] | None = None) -> Graph:
    """Two views of a list of scores meet in an op, the second one divided by a temperature of the shape `factor`."""
    graph = Graph()
    product = graph.op("MatMul", graph.variable("dense/kernel"))
    scores = graph.op("AddV2", product, graph.variable("dense/bias", shape=(1,)))
    rows, columns = graph.op("ExpandDims", scores), graph.op("ExpandDims", scores)
    if factor is not None:
        temperature = graph.op("Const", shape=factor)
        rows, columns = (graph.op("RealDiv", side, temperature) for side in (rows, columns))
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
