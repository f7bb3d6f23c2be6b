"""Statuses: one test for each word, and for each place where structure and numbers tell different stories."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.analyse.builders import FINE, INF, NAN, ZERO, Graph, Row, sized, statuses


def one_layer(row: Row | None) -> Graph:
    """A kernel, a product, a loss; what the kernel got."""
    graph = Graph()
    graph.target(graph.op("Mean", graph.op("MatMul", graph.variable("kernel"))))
    graph.ask("kernel", row)
    return graph


@pytest.mark.parametrize(
    ("row", "status"),
    [
        (FINE, "connected"),
        (sized(1e-7), "connected"),
        (sized(0.9e-7), "vanishing"),
        (sized(1e4), "connected"),
        (sized(1.1e4), "exploding"),
        (ZERO, "zero"),
        (NAN, "nan"),
        (INF, "inf"),
        ((1.0, 0.5, 0.1, 0.0, 1.0, 1.0), "nan"),
    ],
)
def test_numbers_alone_decide_where_a_way_is_open(row: Row, status: str) -> None:
    assert statuses(one_layer(row).diagnose()) == {"kernel": status}


def test_a_variable_without_elements_is_not_zero() -> None:
    assert statuses(one_layer((0.0, 0.0, 0.0, 0.0, 0.0, 0.0)).diagnose()) == {"kernel": "connected"}


def cut(*, row: Row | None) -> Graph:
    graph = Graph()
    rounded = graph.op("Round", graph.variable("kernel"), passes="none")
    graph.target(graph.op("Mean", rounded))
    graph.ask("kernel", row)
    return graph


def test_none_behind_a_cut_is_disconnected() -> None:
    assert statuses(cut(row=None).diagnose()) == {"kernel": "disconnected"}


def test_a_zero_behind_a_cut_is_disconnected() -> None:
    """A function's boundary turns None into zeros, and so does unconnected_gradients=ZERO."""
    assert statuses(cut(row=ZERO).diagnose()) == {"kernel": "disconnected"}


def test_a_number_outvotes_the_structure() -> None:
    assert statuses(cut(row=FINE).diagnose()) == {"kernel": "connected"}


@pytest.mark.parametrize("row", [None, ZERO])
def test_a_variable_without_any_way_is_unused(row: Row | None) -> None:
    graph = one_layer(FINE)
    graph.op("MatMul", graph.variable("forgotten"))
    graph.ask("forgotten", row)

    assert statuses(graph.diagnose()) == {"kernel": "connected", "forgotten": "unused"}


def test_what_is_not_trainable_is_frozen_whatever_it_gets() -> None:
    graph = one_layer(FINE)
    graph.op("Mul", graph.variable("moving_mean", trainable=False))
    graph.ask("moving_mean")

    assert statuses(graph.diagnose())["moving_mean"] == "frozen"


def test_without_a_completed_step_an_open_way_is_not_measured() -> None:
    graph = one_layer(FINE)

    diagnosis = graph.diagnose(measured=False)

    assert statuses(diagnosis) == {"kernel": "not_measured"}
    assert diagnosis.variables[0].gradient is None
    assert "No step was completed" in diagnosis.unverified[-1]
    assert diagnosis.summary == "Not verified: no step was completed, and nothing was measured."
    assert [finding.cause for finding in diagnosis.findings] == ["not_measured"]


def test_a_row_that_this_step_did_not_measure_is_no_evidence() -> None:
    nan = float("nan")

    diagnosis = one_layer((nan,) * 6).diagnose()

    assert statuses(diagnosis) == {"kernel": "not_measured"}
    assert diagnosis.variables[0].gradient is None


def test_an_error_is_that_of_the_variables_behind_the_op_that_raises() -> None:
    """`tape.gradient` raises for all that it was asked; only those behind the op are to be told."""
    graph = Graph()
    early, late = graph.variable("early"), graph.variable("late")
    contrast = graph.op("AdjustContrastv2", graph.op("Conv2D", early), passes="unregistered")
    graph.target(graph.op("Mean", graph.op("Conv2D", contrast, late)))
    graph.ask("early", outcome="error")
    graph.ask("late", outcome="error")

    assert statuses(graph.diagnose(measured=False)) == {"early": "error", "late": "not_measured"}


class TestSeveralTargets:
    """A GAN has a loss for each player."""

    def players(self) -> Graph:
        graph = Graph()
        made = graph.op("MatMul", graph.variable("generator"))
        judged = graph.op("MatMul", made, graph.variable("discriminator"))
        graph.target(graph.op("Mean", judged))
        graph.target(graph.op("Mean", graph.op("Neg", judged)))
        return graph

    def test_each_variable_has_the_status_of_the_target_that_was_asked_for_it(self) -> None:
        graph = self.players()
        graph.ask("generator", sized(1e-9), target=0)
        graph.ask("generator", outcome="not_asked", target=1)
        graph.ask("discriminator", outcome="not_asked", target=0)
        graph.ask("discriminator", FINE, target=1)

        assert statuses(graph.diagnose()) == {"generator": "vanishing", "discriminator": "connected"}

    def test_one_good_gradient_is_enough(self) -> None:
        graph = self.players()
        for name in ("generator", "discriminator"):
            graph.ask(name, ZERO, target=0)
            graph.ask(name, FINE, target=1)

        assert set(statuses(graph.diagnose()).values()) == {"connected"}

    def test_one_nan_spoils_the_sum(self) -> None:
        graph = self.players()
        for name in ("generator", "discriminator"):
            graph.ask(name, NAN, target=0)
            graph.ask(name, FINE, target=1)

        assert set(statuses(graph.diagnose()).values()) == {"nan"}


class TestALossThatTeachesNothing:
    """The inner loss of a step, which gives no variable a gradient, while another loss does."""

    def findings(self, kind: str, *, computed: bool = False, trainable: bool = True) -> list[tuple[str, ...]]:
        """The variables of the findings about the second loss: an op of `kind` of the weight, or of another variable
        alone."""
        graph = Graph()
        weight = graph.variable("weight", trainable=trainable)
        graph.variables[0] = replace(graph.variables[0], computed=computed)
        other = graph.variable("other")
        graph.target(graph.op("Mean", graph.op("MatMul", weight), shape=()))
        ends = [graph.op("Round", other, passes="none")]
        if kind:
            ends.append(graph.op(kind, weight, passes="yes" if kind == "Exp" else "none"))
        graph.target(graph.op("Mean", graph.op("AddV2", *ends), shape=()))
        graph.ask("weight", FINE, target=0)
        graph.ask("weight", None, target=1)
        graph.ask("other", None, target=1)
        return [each.variables for each in graph.diagnose().findings if each.target == 1]

    def test_what_cuts_a_variable_off_from_it_is_told_although_the_variable_learns(self) -> None:
        assert self.findings("Round") == [("other",), ("weight",)]

    def test_a_variable_that_it_does_not_depend_on_misses_nothing(self) -> None:
        assert self.findings("") == [("other",)]

    def test_what_is_not_trained_misses_nothing_either(self) -> None:
        assert self.findings("Round", trainable=False) == [("other",)]
        assert self.findings("Round", computed=True) == [("other",)]

    def test_a_tensor_misses_it_if_nothing_else_was_asked_for(self) -> None:
        graph = Graph()
        point = graph.variable("point")
        graph.variables[0] = replace(graph.variables[0], computed=True)
        graph.target(graph.op("Mean", graph.op("Mul", point), shape=()))
        graph.target(graph.op("Mean", graph.op("Round", point, passes="none"), shape=()))
        graph.ask("point", FINE, target=0)
        graph.ask("point", None, target=1)

        assert [each.variables for each in graph.diagnose().findings if each.target == 1] == [("point",)]


@pytest.mark.parametrize(("row", "status"), [(ZERO, "zero"), (FINE, "connected"), (None, "disconnected")])
def test_a_gradient_that_was_computed_by_hand_needs_no_path(row: Row | None, status: str) -> None:
    graph = cut(row=row)
    graph.targets[0] = replace(graph.targets[0], by_hand=True)

    assert statuses(graph.diagnose()) == {"kernel": status}
