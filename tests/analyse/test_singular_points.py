"""Singular points: which use of a value is to blame, which sides are equal, what has no inverse, and what helps."""

from __future__ import annotations

import pytest

from tb_gradflow.record.report import Diagnosis
from tests.analyse.builders import FINE, INF, NAN, ZERO, Graph, Row, sized, statuses

ALL_INFINITE: Row = (0.0, 0.0, 0.0, 0.0, 0.0, 3.0)


def curve_with_a_linear_part() -> Graph:
    """`tf.where(x <= limit, x * 12.92, tf.pow(x, p))`: both branches are computed from one value."""
    graph = Graph()
    x = graph.op("Mul", graph.variable("albedo"))
    graph.gradient(x, NAN)
    low = graph.op("Mul", x, constants={1: 12.92}, line="low = x * 12.92", api="*")
    high = graph.op("Pow", x, constants={1: 0.4}, line="high = tf.pow(x, 0.4)", api="tf.pow")
    chosen = graph.op("SelectV2", low, high, first=1)
    for op in (low, high):
        graph.gradient(op, sized(0.1, zeros=0.5))
    graph.gradient(chosen, FINE)
    graph.target(graph.op("Mean", chosen))
    graph.ask("albedo", NAN)
    return graph


def test_of_two_uses_the_one_without_a_finite_derivative_is_to_blame() -> None:
    finding = curve_with_a_linear_part().only_finding()

    assert finding.cause == "where_inactive_branch"
    assert finding.op is not None
    assert finding.op.type == "Pow"
    assert "tf.where(ok, tf.pow(safe, 0.4), other)" in finding.fix


def compared(*, kind: str = "SquaredDifference", own: bool = True, zeros: float = 0.0) -> Graph:
    """Two results of one layer, or of one layer and of another, are compared, and no gradient comes of it."""
    graph = Graph()
    kernel = graph.variable("kernel")
    sides = (graph.op("MatMul", kernel), graph.op("MatMul", kernel if own else graph.variable("teacher")))
    for side in sides:
        graph.gradient(side, ZERO)
    difference = graph.op("SquaredDifference" if kind == "SquaredDifference" else "Sub", *sides)
    if kind != "SquaredDifference":
        graph.gradient(difference, ZERO)
        difference = graph.op(kind, difference)
    graph.gradient(difference, sized(0.1, zeros=zeros))
    graph.target(graph.op("Mean", difference))
    graph.ask("kernel", ZERO)
    return graph


@pytest.mark.parametrize("kind", ["SquaredDifference", "Square", "Abs"])
def test_equal_results_of_the_same_weights_are_told(kind: str) -> None:
    finding = compared(kind=kind).only_finding()

    assert (finding.cause, finding.severity) == ("gradient_cancellation", "warning")
    assert finding.op is not None
    assert finding.op.type == kind
    assert "equal in every element" in finding.message
    assert "training=True" in finding.fix


@pytest.mark.parametrize("graph", [compared(own=False), compared(zeros=0.5)])
def test_equality_with_another_network_or_of_what_is_masked_is_not_called_so(graph: Graph) -> None:
    assert graph.only_finding().cause == "zero_gradient"


def inverted(failure: str) -> Diagnosis:
    graph = Graph()
    volume = graph.op("MatrixDeterminant", graph.op("MatMul", graph.variable("shape")), api="tf.linalg.det")
    graph.target(graph.op("Mul", volume, graph.variable("stiffness")))
    for name in ("shape", "stiffness"):
        graph.ask(name, outcome="error")
    graph.failure = failure
    return graph.diagnose(measured=False)


def test_a_gradient_that_needs_an_inverse_which_is_not_there_is_told_at_its_op() -> None:
    diagnosis = inverted("InvalidArgumentError: {{function_node a}} Input is not invertible. [Op:MatrixInverse]")

    assert statuses(diagnosis) == {"shape": "error", "stiffness": "connected"}
    [finding] = [each for each in diagnosis.findings if each.severity == "error"]
    assert (finding.cause, finding.variables) == ("degenerate_decomposition", ("shape",))
    assert finding.op is not None
    assert finding.op.type == "MatrixDeterminant"


def test_what_else_a_gradient_raises_is_said_and_the_tape_is_not_blamed() -> None:
    diagnosis = inverted("ResourceExhaustedError: {{node a}} out of memory")

    assert set(statuses(diagnosis).values()) == {"error"}
    [finding] = diagnosis.findings
    assert finding.cause == "not_measured"
    assert "raises ResourceExhaustedError: out of memory" in finding.message


def logarithm_behind(kind: str, arriving: Row) -> str:
    graph = Graph()
    made = graph.op(kind, graph.variable("move"))
    graph.gradient(made, arriving)
    log = graph.op("Log", made, line="loss = -tf.math.log(likelihood)", api="tf.math.log")
    graph.gradient(log, FINE)
    graph.target(graph.op("Mean", log), loss=float("inf"))
    graph.ask("move", NAN)
    return graph.only_finding().fix


def test_a_floor_is_no_remedy_where_a_whole_product_has_underflowed() -> None:
    assert "Add up the logarithms" in logarithm_behind("While", ALL_INFINITE)
    assert "Keep it above zero" in logarithm_behind("Relu", ALL_INFINITE)
    assert "Keep it above zero" in logarithm_behind("While", INF)


@pytest.mark.parametrize(
    ("after", "fix"), [("Log", "softplus(-2.0 * e)"), ("Mean", "tf.clip_by_value(e, -80.0, 80.0)")]
)
def test_a_hyperbolic_cosine_overflows_on_both_sides(after: str, fix: str) -> None:
    graph = Graph()
    error = graph.op("Sub", graph.variable("price"))
    graph.gradient(error, NAN)
    cosh = graph.op("Cosh", error, line="loss = tf.cosh(e)", api="tf.cosh")
    graph.gradient(cosh, FINE)
    graph.target(graph.op(after, cosh), loss=float("inf"))
    graph.ask("price", NAN)

    finding = graph.only_finding()

    assert finding.cause == "exp_overflow"
    assert fix in finding.fix


def test_the_axis_with_several_entries_is_counted_as_the_caller_counts() -> None:
    """`tf.nn.softmax(w, axis=1)` moves that axis to the end and back; a weight's first axis is not that of a batch."""
    graph = Graph()
    kernel = graph.variable("choice")
    graph.gradient(kernel, ZERO)
    softmax = graph.op("Softmax", kernel, shape=(6, 3, 1), line="w = tf.nn.softmax(c, axis=1)", api="tf.nn.softmax")
    graph.gradient(softmax, FINE)
    graph.target(graph.op("Mean", softmax))
    graph.ask("choice", ZERO)

    finding = graph.only_finding()

    assert finding.cause == "softmax_single_class"
    assert "axis=0)" in finding.fix
