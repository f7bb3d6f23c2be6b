"""Trainings in which nothing changes: a rate that has come to zero, gradients that are lost before they are applied."""

from __future__ import annotations

import numpy as np
import pytest

from tb_gradflow.analyse.diagnose import diagnose
from tb_gradflow.analyse.over_time.plateau import Rest, rest_of
from tb_gradflow.analyse.over_time.run_context import RunContext
from tb_gradflow.analyse.over_time.unmoved import Piece
from tb_gradflow.record.report import Diagnosis
from tb_gradflow.record.schema import FORMAT, Session
from tests.analyse.builders import FINE, INF, ZERO, Graph, Row, sized

SESSION = Session(FORMAT, "0000000000000", "0", "2.21.0", "3.15.0", "model", ())
MOVES, RESTS, UNKNOWN = (1.0, 0.1), (1.0, 0.0), (1.0, float("nan"))

Step = tuple[tuple[float, float], Row]


def network() -> Graph:
    graph = Graph()
    graph.target(graph.op("Mean", graph.op("MatMul", graph.variable("kernel"))))
    graph.ask("kernel", FINE)
    return graph


def piece(first: int, every: int, *steps: Step) -> Piece:
    """Recorded steps: norm and change of the weight, and its gradient."""
    weights = np.array([[(*norms, 0.0, 0.0)] for norms, _ in steps], np.float32)
    gradients = np.array([[row] for _, row in steps], np.float32)
    numbers = tuple(range(first, first + every * len(steps), every))
    return Piece(network().trace(), weights, lambda: gradients, numbers)


def found(*pieces: Piece) -> Rest | None:
    """The pieces in the order of time."""
    return rest_of(reversed(pieces), lambda: pieces[0])


def test_a_schedule_that_has_come_to_zero() -> None:
    learning, over = piece(0, 10, *[(MOVES, FINE)] * 3), piece(30, 10, *[(RESTS, FINE)] * 20)

    assert found(learning, over) == Rest(since=30, until=220, steps=20, moved=True, sure=True)


def test_gradients_that_are_lost_from_the_beginning() -> None:
    assert found(piece(0, 1, *[(RESTS, FINE)] * 70)) == Rest(0, 69, 70, moved=False, sure=True)


def test_a_step_that_creates_its_variables_has_not_moved_them() -> None:
    created = [(UNKNOWN, FINE), *[(RESTS, FINE)] * 9]

    assert found(piece(0, 1, *created)) == Rest(1, 9, 9, moved=False, sure=False)
    assert found(piece(0, 1, *[(MOVES, FINE)] * 3), piece(3, 1, *created)) == Rest(4, 12, 9, moved=True, sure=False)


def test_several_variables_that_move_for_several_steps() -> None:
    graph = Graph()
    graph.target(graph.op("Mean", graph.op("MatMul", graph.variable("kernel"), graph.variable("other"))))
    graph.ask("kernel", FINE)
    graph.ask("other", FINE)
    weights = np.array([[(*norms, 0.0, 0.0)] * 2 for norms in (*[MOVES] * 3, *[RESTS] * 9)], np.float32)
    both = Piece(graph.trace(), weights, lambda: np.array([[FINE, FINE]] * 12, np.float32), tuple(range(12)))

    assert found(both) == Rest(3, 11, 9, moved=True, sure=False)


@pytest.mark.parametrize(
    ("why", "pieces"),
    [
        ("the first steps of a rate that rises, of gradients that are summed up", [piece(0, 1, *[(RESTS, FINE)] * 10)]),
        ("the end of a schedule", [piece(0, 10, *[(MOVES, FINE)] * 30), piece(300, 10, *[(RESTS, FINE)] * 10)]),
        (
            "the end of what there is to learn",
            [piece(0, 10, *[(MOVES, FINE)] * 3), piece(30, 10, *[(RESTS, sized(1e-6))] * 20)],
        ),
    ],
)
def test_it_may_be_meant_where(why: str, pieces: list[Piece]) -> None:
    rest = found(*pieces)

    assert rest is not None
    assert not rest.sure, why


@pytest.mark.parametrize(
    ("why", "steps"),
    [
        ("a step changes something", [(RESTS, FINE)] * 20 + [(MOVES, FINE)]),
        ("steps between the recorded ones do", [((1.0 + at, 0.0), FINE) for at in range(20)]),
        ("what they do is not known", [(UNKNOWN, FINE)] * 20),
        ("no gradient arrives", [(RESTS, ZERO)] * 20),
        ("steps are skipped, for the scale of the loss is too large", [(RESTS, INF)] * 20),
        ("three steps are nothing", [(RESTS, FINE)] * 3),
    ],
)
def test_nothing_is_said_where(why: str, steps: list[Step]) -> None:
    assert found(piece(0, 10, *steps)) is None, why


def diagnosed(rest: Rest) -> Diagnosis:
    graph = network()
    graph.weights[0] = RESTS
    numbers = graph.numbers(), graph.weight_numbers()
    return diagnose(graph.trace(), SESSION, *numbers, tuple(graph.losses), rest.until, context=RunContext(rest=rest))


def test_what_has_moved_before_is_told_to_look_at_the_rate() -> None:
    diagnosis = diagnosed(Rest(30, 220, 20, moved=True, sure=True))

    [finding] = diagnosis.findings
    assert (finding.cause, finding.severity) == ("gradient_not_applied", "warning")
    assert "no variable changes any more: none has changed in the 20 recorded steps from 30 to 220" in finding.message
    assert "learning rate" in finding.fix
    assert "apply_gradients" not in finding.fix
    assert "since step 30" in diagnosis.summary


def test_what_has_never_moved_is_told_to_give_it_to_an_optimizer() -> None:
    [finding] = diagnosed(Rest(0, 69, 70, moved=False, sure=True)).findings

    assert finding.severity == "warning"
    assert "no variable has ever changed" in finding.message
    assert "apply_gradients" in finding.fix


@pytest.mark.parametrize("moved", [True, False])
def test_what_may_be_meant_is_told_as_information(moved: bool) -> None:
    diagnosis = diagnosed(Rest(0, 9, 10, moved=moved, sure=False))

    [finding] = diagnosis.findings
    assert finding.severity == "info"
    assert "Nothing to fix if" in finding.fix
    still = "The gradient reaches the trainable variable, but none of the 10 recorded steps has changed one."
    assert diagnosis.summary == ("Healthy: the gradient reaches the trainable variable." if moved else still)
