"""Parts of a model that take turns: one adapter for each task, of which a step trains one."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from tb_gradflow.analyse.diagnose import diagnose
from tb_gradflow.analyse.over_time.alternating import turns_of
from tb_gradflow.analyse.over_time.run_context import RunContext
from tb_gradflow.analyse.over_time.unmoved import Piece
from tb_gradflow.record.report import Diagnosis
from tb_gradflow.record.schema import FORMAT, Session
from tests.analyse.builders import FINE, NAN, ZERO, Graph, Row

SESSION = Session(FORMAT, "0000000000000", "0", "2.21.0", "3.15.0", "model", ())
FIRST, SECOND = 0, 1


def adapters(*used: str) -> Graph:
    """Two adapters, of which the step computes with some."""
    graph = Graph()
    outputs = {name: graph.op("MatMul", graph.variable(name)) for name in ("first", "second")}
    graph.target(graph.op("Mean", graph.op("AddN", *(outputs[name] for name in used))))
    for name in outputs:
        graph.ask(name, FINE if name in used else None)
    return graph


def piece(graph: Graph, *rows: Row, begin: int = 0) -> Piece:
    """Consecutive steps from one on, with what the first gradient of a trace is in each."""
    trace = graph.trace()
    count = len(graph.numbers())
    gradients = np.array([[row, *[FINE] * (count - 1)] for row in rows], np.float32)
    variables = np.ones((len(rows), len(trace.variables), 4), np.float32)
    return Piece(trace, variables, lambda: gradients, tuple(range(begin, begin + len(rows))))


def turns_in_traces(pattern: str) -> dict[int, int]:
    """What is known of the last step of a run whose steps train the first adapter, `1`, or the second, `2`."""
    graphs = {"1": adapters("first"), "2": adapters("second")}
    return dict(turns_of([piece(graphs[each], FINE, begin=at) for at, each in reversed(list(enumerate(pattern)))]))


@pytest.mark.parametrize(
    ("pattern", "turns"),
    [
        ("121", {SECOND: 1}),
        ("212122", {FIRST: 3}),
        ("1121111", {SECOND: 2}),
        ("11211111", {}),  # it has waited for too long
        ("2111", {}),  # once, and then no more: it may have been switched off
        ("11112", {}),
        ("1", {}),
        ("12", {}),
    ],
)
def test_a_turn_is_one_among_several(pattern: str, turns: dict[int, int]) -> None:
    assert turns_in_traces(pattern) == turns


@pytest.mark.parametrize(
    ("rows", "turns"),
    [
        ([ZERO, FINE, ZERO], {FIRST: 1}),
        ([ZERO, NAN, ZERO], {FIRST: 1}),
        ([FINE, ZERO, ZERO], {}),
        ([ZERO, ZERO, ZERO], {}),
    ],
)
def test_a_gradient_of_zero_may_wait_its_turn(rows: list[Row], turns: dict[int, int]) -> None:
    assert turns_of([piece(adapters("first", "second"), *rows)]) == turns


def test_gradients_are_read_of_a_few_steps_alone() -> None:
    read: list[int] = []

    def numbers(at: int) -> np.ndarray:
        read.append(at)
        return np.array([[ZERO, FINE]] * 32, np.float32)

    trace, variables = adapters("first", "second").trace(), np.ones((32, 2, 4), np.float32)
    pieces = [Piece(trace, variables, partial(numbers, at), tuple(range(at, at + 32))) for at in range(3200, 0, -32)]

    assert turns_of(iter(pieces)) == {}
    assert set(read) == {3200, 3168}


def diagnosed(graph: Graph, turns: dict[int, int]) -> Diagnosis:
    return diagnose(
        graph.trace(),
        SESSION,
        graph.numbers(),
        graph.weight_numbers(),
        tuple(graph.losses),
        9,
        context=RunContext(turns=turns),
    )


def test_who_waits_its_turn_is_told_of_and_is_no_error() -> None:
    graph = adapters("first")

    (waiting,) = diagnosed(graph, {SECOND: 8}).findings
    (lost,) = diagnosed(graph, {}).findings

    assert (waiting.cause, waiting.severity) == (lost.cause, "info")
    assert lost.severity != "info"
    assert waiting.message == lost.message + " Other steps do give it a gradient, most recently step 8."
    assert waiting.fix.startswith("Nothing to fix if these steps are meant to differ. Otherwise: ")
