"""Variables that get a gradient and never change: what is said of them, and when nothing is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from tb_gradflow.analyse.diagnose import diagnose
from tb_gradflow.analyse.over_time.run_context import RunContext
from tb_gradflow.analyse.over_time.unmoved import SURE_FROM, Piece, standstill_of
from tb_gradflow.record.report import Diagnosis
from tb_gradflow.record.schema import FORMAT, Session
from tests.analyse.builders import FINE, NAN, ZERO, Graph, Row

SESSION = Session(FORMAT, "0000000000000", "0", "2.21.0", "3.15.0", "model", ())

ACTOR, CRITIC = 0, 1
MOVES, STANDS = (1.0, 0.1), (1.0, 0.0)
UNKNOWN = (1.0, float("nan"))


def actor_and_critic() -> Graph:
    """Two losses, and a variable for each."""
    graph = Graph()
    for name in ("actor", "critic"):
        target = graph.target(graph.op("Mean", graph.op("MatMul", graph.variable(name))))
        graph.ask(name, FINE, target=target)
    return graph


def piece(graph: Graph, *steps: tuple[tuple[float, float], tuple[float, float]], actor: Row = FINE) -> Piece:
    """Steps of a run: for each, norm and change of the actor's variable and of the critic's."""
    variables = np.array([[(*norms, 0.0, 0.0) for norms in step] for step in steps], np.float32)
    gradients: npt.NDArray[np.float32] = np.array([[actor, FINE]] * len(steps), np.float32)
    return Piece(graph.trace(), variables, lambda: gradients)


def diagnosed(graph: Graph, steps: int, *still: int) -> Diagnosis:
    for each in still:
        graph.weights[each] = STANDS
    return diagnose(
        graph.trace(),
        SESSION,
        graph.numbers(),
        graph.weight_numbers(),
        tuple(graph.losses),
        steps,
        context=RunContext(standstill=dict.fromkeys(still, steps)),
    )


def test_a_variable_that_stands_still_while_others_change_is_counted_over_all_steps() -> None:
    graph = actor_and_critic()
    later, first = piece(graph, (STANDS, MOVES), (STANDS, MOVES)), piece(graph, *[(STANDS, MOVES)] * 5)

    assert standstill_of([later, first]) == {ACTOR: 7}


@pytest.mark.parametrize(
    ("why", "steps", "actor"),
    [
        ("it changes now", [(STANDS, MOVES), (MOVES, MOVES)], FINE),
        ("it has changed before", [(MOVES, MOVES), (STANDS, MOVES), (STANDS, MOVES)], FINE),
        ("it changes between recorded steps", [((2.0, 0.0), MOVES), (STANDS, MOVES), (STANDS, MOVES)], FINE),
        ("nothing changes: gradients are summed up", [(STANDS, STANDS)] * 8, FINE),
        ("once is nothing", [(STANDS, MOVES)], FINE),
        ("what it does is not known", [(UNKNOWN, MOVES)] * 8, FINE),
        ("no gradient", [(STANDS, MOVES)] * 8, ZERO),
        ("steps with NaN are skipped", [(STANDS, MOVES)] * 8, NAN),
    ],
)
def test_nothing_is_said_where(
    why: str, steps: list[tuple[tuple[float, float], tuple[float, float]]], actor: Row
) -> None:
    assert standstill_of([piece(actor_and_critic(), *steps, actor=actor)]) == {}, why


def test_steps_in_which_nothing_changes_do_not_count() -> None:
    steps = [(STANDS, STANDS), (STANDS, MOVES)] * 3

    assert standstill_of([piece(actor_and_critic(), *steps)]) == {ACTOR: 3}


def test_a_trace_that_numbers_its_variables_otherwise_is_read_by_their_names() -> None:
    graph = actor_and_critic()
    turned = replace(
        graph.trace(),
        variables=graph.trace().variables[::-1],
        variable_gradients=tuple(replace(each, variable=1 - each.variable) for each in graph.asked),
    )
    same = Piece(turned, piece(graph, *[(MOVES, STANDS)] * 3).variables, piece(graph, *[(MOVES, STANDS)] * 3).gradients)
    moved = Piece(turned, piece(graph, *[(STANDS, MOVES)] * 3).variables, same.gradients)
    now = piece(graph, *[(STANDS, MOVES)] * 3)

    assert standstill_of([now, same]) == {ACTOR: 6}
    assert standstill_of([now, moved]) == {}


def test_a_loss_that_nothing_applies_is_a_warning() -> None:
    diagnosis = diagnosed(actor_and_critic(), SURE_FROM, ACTOR)

    [finding] = diagnosis.findings
    assert (finding.cause, finding.severity) == ("gradient_not_applied", "warning")
    assert (finding.variables, finding.op) == (("actor",), None)
    assert "none of the 4 recorded steps has changed it" in finding.message
    assert "apply_gradients" in finding.fix
    assert diagnosis.summary == (
        "1 of 2 trainable variables gets a gradient that is not applied: no recorded step has changed it."
    )


def test_of_few_steps_it_may_be_that_gradients_are_summed_up() -> None:
    [finding] = diagnosed(actor_and_critic(), SURE_FROM - 1, ACTOR).findings

    assert (finding.cause, finding.severity) == ("gradient_not_applied", "info")
    assert "accumulated" in finding.message


def test_a_part_that_is_held_still_may_be_meant() -> None:
    graph = actor_and_critic()
    graph.ask("critic", FINE, target=0)

    [finding] = diagnosed(graph, 20, ACTOR).findings

    assert (finding.cause, finding.severity, finding.variables) == ("gradient_not_applied", "info", ("actor",))
    assert "should not change" in finding.fix


def test_a_network_whose_gradient_others_learn_from_is_not_meant_to_change() -> None:
    """Images are learned by the gradient that they give a network."""
    graph = Graph()
    weight = graph.variable("network")
    product = graph.op("MatMul", weight, graph.variable("images"))
    graph.target(graph.op("Mean", product))
    inner = graph.op("MatMul", product)
    graph.ops[inner] = replace(graph.ops[inner], backward=True)
    graph.target(graph.op("Mean", inner))
    graph.ask("network", FINE)
    graph.ask("images", FINE, target=1)

    assert diagnosed(graph, 20, 0).findings == ()
