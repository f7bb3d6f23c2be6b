"""Trainings that have diverged: what the step is told in which numbers end, and what the steps after it are told."""

from __future__ import annotations

import pytest

from tb_gradflow.analyse.over_time.onset import Onset, explained_by, told_first
from tb_gradflow.record.schema import Input
from tests.analyse.builders import FINE, INF, NAN, ZERO, Graph, Row, sized

INFINITE = float("inf")


def regression(*, loss: float, behind: Row, kernel: Row, dtype: str = "float32", loop: bool = False) -> Graph:
    """A squared error of a linear layer, of which the gradients behind the square are known."""
    graph = Graph()
    read = graph.variable("dense/kernel")
    made = graph.op("While" if loop else "MatMul", read, dtype=dtype)
    square = graph.op("Square", made, dtype=dtype)
    graph.target(graph.op("Mean", square), loss=loss)
    graph.gradient(made, kernel)
    graph.gradient(square, behind)
    graph.ask("dense/kernel", kernel)
    graph.inputs.append(Input("x", graph.row(sized(3.0))))
    return graph


def test_numbers_that_grew_over_the_steps_before_are_no_recurrence() -> None:
    finding = regression(loss=INFINITE, behind=sized(1e21), kernel=INF).only_finding()

    assert (finding.cause, finding.severity) == ("exploding_recurrence", "error")
    assert "the training diverges" in finding.message
    assert "reach 1e+21, while the batch reaches 3" in finding.message
    assert "learning rate" in finding.fix
    assert "recurrent" not in finding.message + finding.fix


def test_a_training_diverges_although_the_gradient_is_still_finite() -> None:
    finding = regression(loss=INFINITE, behind=sized(1e21), kernel=sized(1e21)).only_finding()

    assert (finding.cause, finding.severity) == ("exploding_recurrence", "error")
    assert "the training diverges" in finding.message


def test_in_the_very_first_step_no_steps_before_are_blamed() -> None:
    [finding] = regression(loss=INFINITE, behind=sized(1e21), kernel=INF).diagnose(step=0).findings

    assert "in the very first step" in finding.message
    assert "diverges" not in finding.message
    assert finding.fix.startswith("Start with smaller weights")


@pytest.mark.parametrize("behind", [sized(1e10), NAN], ids=["of moderate size", "not finite"])
def test_nothing_is_said_to_diverge_where_no_number_is_that_large(behind: Row) -> None:
    finding = regression(loss=INFINITE, behind=behind, kernel=NAN).only_finding()

    assert finding.cause == "not_finite"


def test_large_data_may_be_enough() -> None:
    graph = regression(loss=INFINITE, behind=sized(1e21), kernel=NAN)
    graph.inputs.append(Input("y", graph.row(sized(1e25))))

    finding = graph.only_finding()

    assert "diverges" not in finding.message
    assert "The batch contains values as large as 1e+25" in finding.message
    assert "Scale" in finding.fix


def test_a_huge_gradient_of_an_infinite_loss_is_the_losss_story() -> None:
    """Half precision has no number for the sum, and the gradients behind it have some."""
    graph = regression(loss=INFINITE, behind=FINE, kernel=sized(5e4), dtype="float16")

    finding = graph.only_finding()

    assert (finding.cause, finding.severity) == ("fp16_overflow", "error")
    assert "The loss is infinite, but no gradient shows it" in finding.message


@pytest.mark.parametrize("other", [ZERO, sized(1e-9), sized(1e9)], ids=["zero", "vanishing", "exploding"])
def test_what_else_is_wrong_beside_weights_that_are_not_finite_follows_from_them(other: Row) -> None:
    """A ReLU makes zeros of NaN, and is not dead."""
    graph = Graph()
    hidden = graph.op("MatMul", graph.variable("body/kernel"))
    relu = graph.op("Relu", hidden)
    out = graph.op("MatMul", relu, graph.variable("head/kernel"))
    graph.target(graph.op("Mean", out))
    graph.gradient(hidden, ZERO)
    graph.gradient(relu, FINE)
    graph.ask("body/kernel", ZERO)
    graph.ask("head/kernel", other)
    graph.nonfinite[0] = (4.0, 4.0)

    diagnosis = graph.diagnose()

    [finding] = diagnosis.findings
    assert (finding.cause, finding.variables) == ("nonfinite_weights", ("body/kernel",))
    assert "all the same" not in finding.message
    assert diagnosis.summary.startswith("1 of 2 trainable variables gets non-finite values")


def test_where_nobody_saw_the_weights_break_the_last_step_before_tells_what_grew() -> None:
    growing = regression(loss=5.0, behind=sized(1.0), kernel=sized(1e7)).diagnose()
    graph = regression(loss=float("nan"), behind=NAN, kernel=NAN)
    graph.nonfinite[0] = (4.0, 4.0)
    onset = explained_by(Onset(first=22, last=9, recorded=False), growing, 0)

    began, weights = told_first(onset, graph.diagnose().findings)

    assert (began.cause, began.severity) == ("exploding_recurrence", "error")
    assert began.message.startswith(
        "In step 9, the last recorded step before it started: `dense/kernel` gets a gradient"
    )
    assert weights.cause == "nonfinite_weights"


def test_a_last_step_that_was_well_tells_nothing() -> None:
    onset = Onset(first=22, last=9, recorded=False)

    assert explained_by(onset, regression(loss=5.0, behind=sized(1.0), kernel=FINE).diagnose(), 0) == onset
