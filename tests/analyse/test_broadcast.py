"""Labels whose rank is another than that of the predictions: every prediction is compared with every label."""

from __future__ import annotations

import pytest

from tests.analyse.builders import FINE, Graph

Shape = tuple[int, ...]


def regression(
    *,
    given: Shape = (8, 1),
    made: Shape = (8, 8),
    difference: str = "Sub",
    bent: str = "Square",
    averaged: str = "Mean",
    line: str = "loss = tf.reduce_mean(tf.square(y - p))",
    spread_by: str = "",
    beside: str = "data",
    labels: Shape | None = None,
) -> Graph:
    graph = Graph()
    prediction = graph.op("MatMul", graph.variable("kernel"), shape=given)
    if spread_by:
        prediction = graph.op(spread_by, prediction, shape=given)
    other = graph.op("MatMul", graph.variable("other"), shape=(8,)) if beside != "data" else -1
    if beside == "stopped":
        other = graph.op("StopGradient", other, passes="not_differentiable", shape=(8,))
    inputs = (prediction,) if other < 0 else (prediction, other)
    told = {1: labels} if labels is not None else {}
    apart = graph.op(difference, *inputs, shape=made, api="-", line=line, input_count=2, given=told)
    square = graph.op(bent, apart, shape=made) if bent else apart
    graph.target(graph.op(averaged, square, shape=()))
    graph.ask("kernel", FINE)
    if other >= 0:
        graph.ask(
            "other", FINE if beside == "learned" else None, outcome="value" if beside == "learned" else "not_asked"
        )
    return graph


def weighted_pairs(weights: Shape) -> Graph:
    """The sum over all pairs of a prediction and a label, each pair times a number that is data."""
    graph = Graph()
    prediction = graph.op("MatMul", graph.variable("kernel"), shape=(8, 1))
    product = graph.op("Mul", prediction, shape=(8, 8), api="-", line="f * y", input_count=2, given={1: (8,)})
    weighed = graph.op("Mul", product, shape=(8, 8), input_count=2, given={1: weights})
    graph.target(graph.op("Sum", weighed, shape=()))
    graph.ask("kernel", FINE)
    return graph


def test_a_product_is_reported_where_a_single_number_scales_all_pairs() -> None:
    [finding] = weighted_pairs(()).diagnose().findings

    assert finding.cause == "labels_broadcast"
    assert "computes a result of shape [8, 8], every row of one side with every row of the other" in finding.message


@pytest.mark.parametrize(
    "graph",
    [
        regression(),
        regression(given=(8,)),
        regression(difference="SquaredDifference", bent=""),
        regression(bent="Abs", averaged="Sum"),
        regression(given=(-1, 1), labels=(-1,), made=(-1, -1)),
        regression(given=(-1,), labels=(-1, 1), made=(-1, -1)),
        regression(difference="Mul", bent="", line="loss = -tf.reduce_mean(y * tf.math.log(p))"),
        regression(difference="Mul", bent="Neg", given=(-1, 1), labels=(-1,), made=(-1, -1)),
        regression(difference="Mul", bent="Square", line="loss = tf.reduce_mean(tf.square(y * p))"),
    ],
    ids=[
        "labels of rank one",
        "labels of rank two",
        "squared at once",
        "summed",
        "a batch of any size",
        "a batch of any size, labels of rank two",
        "a product",
        "a product, a batch of any size",
        "a product that is squared",
    ],
)
def test_a_mean_over_all_pairs_is_told(graph: Graph) -> None:
    finding = graph.only_finding()

    assert (finding.cause, finding.severity, finding.variables) == ("labels_broadcast", "warning", ("kernel",))
    told = "mixes the rows of the batch" if finding.op and finding.op.type == "Mul" else "the mean of all labels"
    assert told in finding.message


def test_a_target_that_is_stopped_is_a_label_too() -> None:
    causes = {finding.cause for finding in regression(beside="stopped").diagnose().findings}

    assert "labels_broadcast" in causes


@pytest.mark.parametrize(
    "graph",
    [
        regression(made=(8, 1)),
        regression(made=(8, 4)),
        regression(given=(1, 1), made=(1, 1)),
        regression(given=(-1, 1), made=(-1, -1)),
        regression(given=(-1, 1), labels=(-1, -1), made=(-1, -1)),
        regression(given=(8, 1), labels=(8, 8)),
        regression(bent="Exp"),
        regression(averaged="Min"),
        regression(spread_by="ExpandDims"),
        regression(line="loss = tf.reduce_mean(tf.abs(p[:, None] - y))"),
        regression(beside="learned"),
        regression(difference="Mul", bent="Exp"),
        regression(difference="Mul", bent="", spread_by="ExpandDims"),
        weighted_pairs((8, 8)),
    ],
    ids=[
        "the same shape",
        "quantiles",
        "a batch of one",
        "known at run time alone",
        "labels of any shape",
        "labels for each of several outputs",
        "a kernel",
        "the nearest",
        "spread on purpose",
        "spread in the line",
        "of what is learned",
        "a product that is not averaged",
        "a product, spread on purpose",
        "a product of pairs, each with a weight",
    ],
)
def test_nothing_is_said_where_each_is_compared_with_each_on_purpose_or_is_not(graph: Graph) -> None:
    assert "labels_broadcast" not in {finding.cause for finding in graph.diagnose().findings}
