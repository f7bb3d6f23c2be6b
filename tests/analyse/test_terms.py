"""A term of a loss that is a mere number, beside others that teach."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.terms import terms_in
from tb_gradflow.record.report import Diagnosis
from tb_gradflow.record.terms import Term, TermCosines, TermGradient
from tests.analyse.builders import FINE, ZERO, Graph


def two_terms(kind: str, *, alone: bool = False, learned: bool = False) -> Diagnosis:
    """A loss of data, and of what `kind` makes of a kernel."""
    graph = Graph()
    kernel = graph.variable("kernel")
    error = graph.op("Mean", graph.op("Square", graph.op("MatMul", kernel)), shape=())
    made = graph.op(kind, kernel, passes="none", dtype="bool" if kind == "Greater" else "float32", api=f"tf.{kind}")
    if kind == "Greater":
        made = graph.op("Cast", made, passes="dtype")
    if learned:
        made = graph.op("Mul", made, kernel)
    penalty = graph.op("Mul", graph.op("Sum", made, shape=()), shape=(), constants={0: 0.1})
    graph.target(penalty if alone else graph.op("AddV2", error, penalty, shape=()))
    graph.ask("kernel", *([] if alone else [FINE]))
    return graph.diagnose()


@pytest.mark.parametrize(("kind", "cause"), [("Greater", "nondiff_counting"), ("Round", "nondiff_rounding")])
def test_a_term_without_a_gradient_is_told(kind: str, cause: str) -> None:
    diagnosis = two_terms(kind)

    [finding] = diagnosis.findings
    assert (finding.cause, finding.severity) == (cause, "info")
    assert "gets no gradient from one term of the loss: " in finding.message
    assert diagnosis.summary.startswith("Healthy")


@pytest.mark.parametrize(
    ("wrapped", "looked_into"),
    [
        ("Identity", True),
        ("Neg", True),
        ("Mean", True),  # of a single number
        ("Mul", True),  # by a constant
        ("RealDiv", True),
        ("Square", False),  # no sum: its terms share a gradient
        ("Log", False),
    ],
)
def test_a_sum_is_looked_for_behind_what_only_scales_it(wrapped: str, looked_into: bool) -> None:
    assert bool(a_silent_term(wrapped).findings) == looked_into


@pytest.mark.parametrize("wrapped", ["Sum", "Mean"])
@pytest.mark.parametrize("joined", ["Pack", "AddN"])
def test_the_terms_may_stand_in_a_list(wrapped: str, joined: str) -> None:
    """`tf.add_n([error, penalty])`, `tf.reduce_mean([error, penalty])`."""
    [finding] = a_silent_term(wrapped, joined=joined).findings

    assert finding.cause == "nondiff_rounding"


def test_a_product_is_no_sum_of_its_factors() -> None:
    assert not a_silent_term("Identity", joined="Mul").findings


def a_silent_term(wrapped: str, *, joined: str = "AddV2") -> Diagnosis:
    """A loss of an error, and of a rounded kernel, in one more op."""
    graph = Graph()
    kernel = graph.variable("kernel")
    error = graph.op("Mean", graph.op("Square", graph.op("MatMul", kernel)), shape=())
    penalty = graph.op("Sum", graph.op("Round", kernel, passes="none", api="tf.round"), shape=())
    both = graph.op(joined, error, penalty, shape=(2,) if joined == "Pack" else ())
    graph.target(graph.op(wrapped, both, shape=()))
    graph.ask("kernel", FINE)
    return graph.diagnose()


def test_what_is_stopped_on_purpose_is_not() -> None:
    assert not two_terms("StopGradient").findings


def test_a_term_that_teaches_something_may_hold_what_does_not() -> None:
    assert not two_terms("Greater", learned=True).findings


def test_a_loss_of_nothing_else_is_a_cut() -> None:
    [finding] = two_terms("Greater", alone=True).findings

    assert finding.severity == "error"


def test_of_what_else_gets_a_penalty_alone_it_is_the_cut() -> None:
    """The mass of a truss teaches, and its displacement comes from a solver outside of TensorFlow."""
    graph = Graph()
    areas = graph.op("Exp", graph.variable("log_areas"), shape=(3,))
    solved = graph.op("PyFunc", areas, passes="not_differentiable", shape=(), api="tf.numpy_function")
    mass = graph.op("Sum", areas, shape=())
    graph.target(graph.op("AddV2", graph.op("Square", solved, shape=()), mass, shape=()))
    graph.ask("log_areas", FINE)

    [finding] = graph.diagnose().findings

    assert (finding.cause, finding.culprit) == ("python_escape", solved)


def test_an_op_that_cuts_off_others_altogether_is_told_once() -> None:
    """A memory that a penalty on its activity teaches, behind a head that nothing does."""
    graph = Graph()
    memory, head = graph.variable("memory"), graph.variable("head")
    rounded = graph.op("Round", graph.op("Mul", memory, head), passes="none", api="tf.round")
    activity = graph.op("Sum", graph.op("Square", graph.op("MatMul", memory)), shape=())
    graph.target(graph.op("AddV2", graph.op("Mean", graph.op("Square", rounded), shape=()), activity, shape=()))
    graph.ask("memory", FINE)
    graph.ask("head")

    [finding] = graph.diagnose().findings

    assert (finding.severity, finding.variables) == ("error", ("head",))


@pytest.mark.parametrize(("loss", "told"), [(0.0, "is not inverted"), (0.3, "let them through")])
def test_a_mask_that_leaves_nothing_of_the_loss_may_be_the_wrong_way_round(loss: float, told: str) -> None:
    graph = Graph()
    square = graph.op("Square", graph.op("MatMul", graph.variable("kernel")))
    masked = graph.op("Mul", square, api="*", line="return tf.reduce_sum(per_step * mask)")
    for op in (0, 1, square):
        graph.gradient(op, ZERO)
    graph.gradient(masked, FINE)
    graph.target(graph.op("Sum", masked, shape=()), loss=loss)
    graph.ask("kernel", ZERO)

    finding = graph.only_finding()

    assert finding.cause == "mask_multiplies_to_zero"
    assert told in finding.fix


@pytest.mark.parametrize("stopped", [False, True])
def test_what_python_computes_beside_other_terms_is_told(stopped: bool) -> None:
    """The sample of a variational autoencoder: its encoder learns from the divergence alone."""
    graph = Graph()
    mean = graph.op("MatMul", graph.variable("encoder"))
    sample = graph.op("PyFunc", mean, passes="not_differentiable", api="tf.numpy_function")
    if stopped:  # as in a straight-through line, which has a way around it
        sample = graph.op("StopGradient", sample, passes="not_differentiable")
    made = graph.op("Square", graph.op("MatMul", sample, graph.variable("decoder")))
    graph.target(graph.op("Mean", graph.op("AddV2", made, graph.op("Square", mean))))
    graph.ask("encoder", FINE)
    graph.ask("decoder", FINE)

    findings = [(each.cause, each.severity, each.variables) for each in graph.diagnose().findings]

    assert findings == ([] if stopped else [("python_escape", "info", ("encoder",))])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_the_angles_of_terms_may_stand_in_any_order(order: tuple[int, ...]) -> None:
    """A row has the angle of the first gradient with each later one, then of the second: in the order of the trace."""
    graph = Graph()
    kernel = graph.variable("kernel")
    graph.target(graph.op("Sum", kernel, shape=()))
    graph.ask("kernel", FINE)
    angle = {frozenset((0, 1)): 0.1, frozenset((0, 2)): 0.2, frozenset((1, 2)): 0.3}
    trace = dataclasses.replace(
        graph.trace(),
        terms=tuple(Term(target=0, name=name, kind="term", op=-1, source=None, row=0, trains=True) for name in "abc"),
        term_gradients=tuple(TermGradient(term=each, variable=0, row=0) for each in order),
        term_cosines=(TermCosines(target=0, variable=0, row=1),),
    )
    row = [angle[frozenset(pair)] for pair in itertools.combinations(order, 2)]
    rows = np.array([FINE, [*row, 0.0, 0.0, 0.0]], np.float32)

    reports = terms_in(Measured(Topology(trace), rows, graph.weight_numbers(), (1.0,)))

    told = {
        frozenset((report.name, each.term)): each.cosine for report in reports for each in report.variables[0].cosine
    }
    assert told == {frozenset("abc"[number] for number in pair): np.float32(value) for pair, value in angle.items()}
