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
    assert "`tf.pow(tf.maximum(x, 1e-12), 0.4)` instead" in finding.fix


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

    assert statuses(diagnosis) == {"shape": "error", "stiffness": "not_measured"}
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
    assert "Sum the logarithms" in logarithm_behind("While", ALL_INFINITE)
    assert "Keep its input above zero" in logarithm_behind("Relu", ALL_INFINITE)
    assert "Keep its input above zero" in logarithm_behind("While", INF)


@pytest.mark.parametrize(
    ("after", "fix"), [("Log", "softplus(-2.0 * e)"), ("Mean", "tf.clip_by_value(e, -20.0, 20.0)")]
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


def scaled_by_exponentials(cost: str, factor: float) -> Graph:
    """Sinkhorn: `u = mu / (exp(-cost / epsilon) @ v)`, of a cost that is never negative or may be anything."""
    graph = Graph()
    spread = graph.op("Neg", graph.op("Sum", graph.op(cost, graph.op("MatMul", graph.variable("project")))))
    scaled = graph.op("RealDiv", spread, constants={1: factor})
    kernel = graph.op("Exp", scaled, api="tf.exp", line="k = tf.exp(-c / epsilon)")
    u = graph.op("RealDiv", graph.op("MatMul", kernel), first=1, api="/", line="u = mu / tf.matmul(k, v)")
    plan = graph.op("Mul", u, kernel)
    for op in (scaled, kernel, u):
        graph.gradient(op, NAN)
    graph.gradient(plan, FINE)
    graph.target(graph.op("Sum", plan), loss=float("nan"))
    graph.ask("project", NAN)
    return graph


def test_an_exponential_of_what_is_never_positive_does_not_overflow() -> None:
    finding = scaled_by_exponentials("Square", 0.01).only_finding()

    assert finding.cause == "zero_over_zero"
    assert "`tf.exp` (model.py:17) underflows to zero for inputs far below zero" in finding.message
    assert "tf.reduce_logsumexp(log_terms)" in finding.fix


@pytest.mark.parametrize(("cost", "factor"), [("Tanh", 0.01), ("Square", -0.01)])
def test_an_exponential_of_what_may_be_positive_is_not_said_to_vanish(cost: str, factor: float) -> None:
    finding = scaled_by_exponentials(cost, factor).only_finding()

    assert finding.message.endswith("`/` (model.py:17) divides zero by zero.")


@pytest.mark.parametrize(
    ("api", "line", "fix"),
    [
        ("**", "y = x ** 0.3", "`(x + 1e-7) ** 0.3`"),
        ("keras.ops.power", "y = keras.ops.power(x, 0.3)", "`keras.ops.power(x + 1e-7, 0.3)`"),
        ("tf.image.ssim_multiscale", "y = tf.image.ssim_multiscale(a, b, 1.0)", "Start with `tf.image.ssim`"),
        ("tf.image.other", "y = tf.image.other(a, b)", "Write `tf.image.other` yourself"),
    ],
)
def test_a_power_inside_of_another_function_cannot_be_kept_from_zero_by_its_arguments(
    api: str, line: str, fix: str
) -> None:
    graph = Graph()
    x = graph.op("Relu", graph.variable("kernel"))
    graph.gradient(x, NAN)
    power = graph.op("Pow", x, api=api, line=line)
    graph.gradient(power, FINE)
    graph.target(graph.op("Mean", power))
    graph.ask("kernel", NAN)

    finding = graph.only_finding()

    assert finding.cause == "pow_fraction_at_zero"
    assert fix in finding.fix


@pytest.mark.parametrize(
    ("line", "api", "fix"),
    [
        (
            "return tf.pow(tf.pow(a, 2) + tf.pow(b, 2), 0.5)",
            "tf.pow",
            "tf.pow((tf.pow(a, 2) + tf.pow(b, 2)) + 1e-7, 0.5)",
        ),
        ("loss = (a ** 2 + b ** 2) ** 0.5", "**", "((a ** 2 + b ** 2) + 1e-7) ** 0.5"),
        ("loss = tf.pow(a, 2) + tf.pow(b, p)", "tf.pow", "tf.pow(b + 1e-7, p)"),
    ],
)
def test_of_several_powers_on_a_line_the_fraction_is_kept_from_zero(line: str, api: str, fix: str) -> None:
    graph = Graph()
    x = graph.op("Relu", graph.variable("kernel"))
    graph.gradient(x, NAN)
    power = graph.op("Pow", x, constants={1: 0.5}, api=api, line=line)
    graph.gradient(power, FINE)
    graph.target(graph.op("Mean", power))
    graph.ask("kernel", NAN)

    finding = graph.only_finding()

    assert finding.cause == "pow_fraction_at_zero"
    assert fix in finding.fix
