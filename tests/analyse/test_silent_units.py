"""Layers most of whose units get no gradient: since when, and when nothing is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tb_gradflow.analyse.diagnose import diagnose
from tb_gradflow.analyse.over_time.run_context import RunContext
from tb_gradflow.analyse.over_time.silent_units import Silence, silences_of
from tb_gradflow.analyse.over_time.unmoved import Piece
from tb_gradflow.record.report import Diagnosis
from tb_gradflow.record.schema import FORMAT, Session
from tests.analyse.builders import FINE, Graph, Row

SESSION = Session(FORMAT, "0000000000000", "0", "2.21.0", "3.15.0", "model", ())
UNITS = 32
BIAS = 1
UNKNOWN = -1


def row(zeros: float) -> Row:
    """A gradient of which a share of the elements is zero."""
    return (*FINE[:3], zeros, *FINE[4:])


MOSTLY_ZERO = row(0.875)


def layer(bias: Row = MOSTLY_ZERO, *, behind: Row = FINE, rows: int = 16, relu: str = "Relu") -> Graph:
    """`mean(relu(x @ kernel + bias))`."""
    graph = Graph()
    shape = None if rows == UNKNOWN else (rows, UNITS)
    product = graph.op("MatMul", graph.variable("up/kernel"), shape=shape)
    added = graph.op("BiasAdd", product, graph.variable("up/bias", shape=(UNITS,)), shape=shape)
    active = graph.op(relu, added, shape=shape)
    graph.target(graph.op("Mean", active))
    graph.ask("up/kernel", FINE)
    graph.ask("up/bias", bias)
    graph.gradient(active, behind)
    return graph


def diagnosed(graph: Graph, silences: dict[int, Silence] | None = None) -> Diagnosis:
    return diagnose(
        graph.trace(),
        SESSION,
        graph.numbers(),
        graph.weight_numbers(),
        tuple(graph.losses),
        40,
        context=RunContext(silences=silences or {}),
    )


def steps(graph: Graph, first: int, *shares: float) -> Piece:
    """Steps of a run in which so large a share of the bias gets no gradient."""
    trace = graph.trace()
    place = next(entry.row for entry in trace.variable_gradients if entry.variable == BIAS)
    numbers = np.stack([graph.numbers()] * len(shares))
    numbers[:, place, 3] = shares
    variables = np.stack([graph.weight_numbers()] * len(shares))
    return Piece(trace, variables, lambda: numbers, tuple(range(first, first + len(shares))))


def test_the_units_and_the_relu_are_named() -> None:
    diagnosis = diagnosed(layer())

    [finding] = diagnosis.findings
    assert (finding.cause, finding.severity, finding.variables) == ("dead_units", "info", ("up/bias",))
    assert finding.message.startswith("28 of 32 units of `up` are dead in this step: `Relu`")
    assert diagnosis.variables[BIAS].status == "connected"


def test_since_when_is_told_where_other_steps_were_recorded() -> None:
    [finding] = diagnosed(layer(rows=UNKNOWN), {BIAS: Silence(9, 31, 8, 3 / UNITS)}).findings

    assert finding.message.endswith(" In step 8, 3 were dead; since step 9, at least 24.")


@pytest.mark.parametrize(
    ("why", "graph"),
    [
        ("two in three are on", layer(row(2 / 3))),
        ("none is on: that is another cause", layer(row(1.0))),
        ("one row alone switches half of the units off", layer(rows=1)),
        ("nobody knows how many rows there are", layer(rows=UNKNOWN)),
        ("what follows has switched them off", layer(behind=MOSTLY_ZERO)),
        ("no ReLU", layer(relu="Tanh")),
    ],
)
def test_nothing_is_said_where(why: str, graph: Graph) -> None:
    assert all(finding.cause != "dead_units" for finding in diagnosed(graph).findings), why


def test_the_silence_is_followed_back_over_pieces_to_the_step_before_it() -> None:
    graph = layer()

    found = silences_of([steps(graph, 4, 0.75, 0.875), steps(graph, 0, 0.0, 0.25, 0.125, 0.8)])

    assert found == {BIAS: Silence(3, 3, 2, 0.125)}


def test_units_that_are_back_are_no_silence() -> None:
    assert silences_of([steps(layer(), 0, 0.9, 0.9, 0.5)]) == {}


def test_a_step_without_measurement_ends_what_is_known() -> None:
    assert silences_of([steps(layer(), 0, 0.9, float("nan"), 0.9, 0.9)]) == {BIAS: Silence(2, 2)}


def test_only_so_many_steps_are_looked_at() -> None:
    pieces: list[Any] = [steps(layer(), first, *[0.9] * 40) for first in (120, 80, 40, 0)]

    assert silences_of(pieces) == {BIAS: Silence(80, 80)}


def test_a_trace_that_numbers_its_variables_otherwise_is_read_by_their_names() -> None:
    graph = layer()
    trace = graph.trace()
    turned = replace(
        trace,
        variables=tuple(reversed(trace.variables)),
        variable_gradients=tuple(replace(each, variable=1 - each.variable) for each in trace.variable_gradients),
    )
    earlier = steps(graph, 0, 0.9, 0.9)

    found = silences_of([steps(graph, 2, 0.9), replace(earlier, trace=turned)])

    assert found == {BIAS: Silence(0, 3)}


def test_a_bias_that_two_ops_use_is_not_judged_by_one_of_them() -> None:
    graph = layer()
    used_again = graph.op("Mul", graph.read("up/bias"))
    graph.target(graph.op("Mean", used_again))
    graph.ask("up/bias", MOSTLY_ZERO)

    assert "dead_units" not in [finding.cause for finding in diagnosed(graph).findings]
