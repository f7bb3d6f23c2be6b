"""Gradients that are NaN or infinite: the op whose incoming gradient is finite and whose outgoing one is not.

If the numbers show that the op only passes on what broke in front of it, the op is looked for between the birthplace
and the variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tb_gradflow.analyse.evidence.signs import is_never_positive
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.op_sets import constant_of
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.step.broken_midstep import broken_meanwhile, is_broken_before
from tb_gradflow.record.schema import Op

_BY_TYPE = {
    "sqrt_at_zero": ("Sqrt", "Rsqrt", "EuclideanNorm"),
    "zero_over_zero": ("RealDiv", "Div", "Reciprocal", "Inv", "Xdivy", "Angle", "Atan2"),
    "log_zero": ("Log", "Log1p", "Xlogy", "Xlog1py"),
    "exp_overflow": ("Exp", "Expm1", "Cosh", "Sinh"),
    "pow_fraction_at_zero": ("Pow",),
    "acos_at_one": ("Acos", "Asin", "Acosh", "Atanh"),
    "softmax_all_masked": ("Softmax", "LogSoftmax"),
    "degenerate_decomposition": (
        *("Cholesky", "Svd", "SelfAdjointEigV2", "Eig", "Qr", "LogMatrixDeterminant", "MatrixInverse", "MatrixSolve"),
        *("MatrixTriangularSolve", "MatrixSolveLs", "MatrixSquareRoot"),
    ),
}
CAUSE = {op_type: cause for cause, types in _BY_TYPE.items() for op_type in types}

# At the point where these leave the finite numbers, a gradient other than zero becomes infinite. If NaN comes out,
# NaN went in.
_INFINITE_THERE = frozenset({"Log", "Log1p", "Exp", "Expm1"})

_LARGEST_HALF = 65504.0

_ELEMENTWISE = frozenset(
    {"Mul", "AddV2", "Add", "Sub", "Neg", "RealDiv", "Div", "Exp", "Log", "Log1p", "Sqrt", "Rsqrt", "Square", "Pow"}
    | {"Cast", "Identity", "Reciprocal", "Inv", "Reshape", "Acos", "Asin", "Tanh", "Sigmoid", "Abs", "Expm1"}
    | {"Maximum", "Minimum", "Softplus", "SquaredDifference", "MulNoNan", "Xdivy", "Xlogy", "Atanh", "Acosh", "Sign"}
)

_FACTORS = frozenset({"Mul", "RealDiv", "Neg", "Identity", "Cast", "Reshape", "ExpandDims", "Squeeze", "BroadcastTo"})

# A positive sum stays what it was made of through these.
_SUMMING = frozenset(
    {"Sum", "Mean", "AddV2", "Add", "AddN", "BiasAdd", "Reshape", "ExpandDims", "Squeeze", "Identity", "Cast", "Cumsum"}
    | {"BroadcastTo", "Transpose", "Max"}
)


def nonfinite_weights(suspect: Suspect) -> Verdict | None:
    """Weights that were NaN or infinite before the step: nothing that happens in it is to blame."""
    bad = suspect.measured.nonfinite_weights(suspect.target)
    own = suspect.state.variable in suspect.measured.nonfinite_before
    if own or (bad and suspect.state.status in ("nan", "inf")):
        return Verdict("nonfinite_weights", "error", NO_OP)
    return None


def weights_broken_meanwhile(suspect: Suspect) -> Verdict | None:
    """Weights that the step itself broke, with the update for another loss, before this one was computed from them."""
    measured, state = suspect.measured, suspect.state
    if state.status not in ("nan", "inf") or is_broken_before(measured, state.variable, state.target):
        return None
    return Verdict("nonfinite_weights", "info", NO_OP) if broken_meanwhile(measured, state.target) else None


def broken_by_update(suspect: Suspect) -> Verdict | None:
    """A finite gradient, and weights that are NaN or infinite after the step: the optimizer made them so. Where the
    gradient of another variable is not finite, it did no more than pass that on: a norm of all is not finite then."""
    became = suspect.state.variable in suspect.measured.nonfinite_after and suspect.state.status not in ("nan", "inf")
    if not became:
        return None
    return Verdict("nonfinite_update", "info" if beside_a_broken_gradient(suspect) else "error", NO_OP)


def beside_a_broken_gradient(suspect: Suspect) -> bool:
    """Whether the step gave any variable a gradient that is not finite."""
    measured, entries = suspect.measured, suspect.topology.trace.variable_gradients

    def search() -> bool:
        reports = map(measured.of_variable, entries)
        return any(report is not None and (report.nan_count or report.inf_count) for report in reports)

    return measured.once("broken gradients", search)


def where_inactive_branch(suspect: Suspect) -> Verdict | None:
    """`tf.where` hides the value, which is why the loss is finite, and not its derivative: zero times infinity.

    The evidence is the zeros in the incoming gradient, which mark the elements that were hidden.
    """
    if not suspect.measured.loss_is_finite(suspect.target):
        return None
    if not _is_hidden(suspect, suspect.culprit) or _another_is_singular(suspect):
        return None
    return Verdict("where_inactive_branch", "error", _singular_in(suspect))


def _is_hidden(suspect: Suspect, place: int) -> bool:
    """Whether a `tf.where` takes an op's value, and leaves out some of its elements."""
    incoming = suspect.measured.of_op(suspect.target, place)
    if incoming is not None and incoming.zero_fraction == 0:
        return False
    trace = suspect.topology.trace
    for op, after in pairwise(suspect.topology.gradient(suspect.target).from_op(place)):
        if trace.ops[after].type in ("Select", "SelectV2"):
            return any(edge.op == op and edge.input > 0 for edge in trace.ops[after].inputs)
        if trace.ops[after].type not in _ELEMENTWISE:
            return False
    return False


def _singular_in(suspect: Suspect) -> int:
    """Of what a `tf.where` hides, the function that has no finite derivative: the birthplace itself, or, where that
    only multiplies with an infinite value, what makes this value."""
    if suspect.op.type in CAUSE:
        return suspect.culprit
    trace = suspect.topology.trace
    for edge in suspect.op.inputs:
        if edge.op >= 0 and trace.ops[edge.op].type in CAUSE:
            return edge.op
    return suspect.culprit


def _another_is_singular(suspect: Suspect) -> bool:
    """Whether a `tf.where` also hides a function of the same value that has no finite derivative somewhere, and the
    suspect is none: of the gradients that are added up, it is that one's which is not finite."""
    if _singular_in(suspect) != suspect.culprit or suspect.op.type in CAUSE:
        return False
    users = suspect.topology.onward(suspect.producer)
    return any(suspect.type_of(user) in CAUSE and _is_hidden(suspect, user) for user in users)


def nonfinite_input(suspect: Suspect) -> Verdict | None:
    """The batch holds NaN, and the loss shows it. Infinities alone may be a mask that a softmax is given on purpose."""
    if suspect.measured.loss_is_finite(suspect.target):
        return None
    reports = [report for _, report in suspect.measured.nonfinite_inputs]
    if any(report.nan_count for report in reports) or (reports and not _is_masked_softmax(suspect)):
        return Verdict("nonfinite_input", "error", NO_OP)
    return None


def _is_masked_softmax(suspect: Suspect) -> bool:
    return CAUSE.get(suspect.op.type) == "softmax_all_masked"


def fp16_overflow(suspect: Suspect) -> Verdict | None:
    """Above 65504 half precision has infinity: at the birthplace, or in front of it where the loss shows it too."""
    if singular_here(suspect) is not None:
        return None
    if _is_half(suspect, suspect.culprit) or _comes_back_half(suspect):
        return Verdict("fp16_overflow", "error")
    if suspect.measured.loss_is_finite(suspect.target):
        return None
    half = suspect.measured.once(
        ("half", suspect.culprit),
        lambda: _overflown(suspect),
    )
    if half < 0:
        return None
    singular = accused(suspect, half)
    # Half precision has no 1e-8 that would keep a divisor from zero.
    if singular is not None and singular.cause == "zero_over_zero":
        return singular
    return Verdict("fp16_overflow", "error", half)


def _comes_back_half(suspect: Suspect) -> bool:
    """Whether the gradient is cast to half precision there, as in front of a last layer in single precision."""
    return suspect.op.type == "Cast" and suspect.producer >= 0 and _is_half(suspect, suspect.producer)


def _overflown(suspect: Suspect) -> int:
    """The nearest op in half precision; in front of a softmax, if there is one: what comes out of that is at most one,
    and NaN only if what went in was too large."""
    ancestors = suspect.topology.ancestors(suspect.culprit)
    half = [op for op in ancestors if _is_half(suspect, op)]
    beyond = [op for op in half if suspect.type_of(op) == "Mul" and _has_constant_beyond(suspect, op)]
    if beyond:
        return beyond[-1]
    softmax = next((op for op in half if suspect.type_of(op) == "Softmax"), -1)
    scores = [op for op in half if softmax >= 0 and op < softmax and suspect.type_of(op) in PRODUCTS]
    return next(iter([*sorted(scores, reverse=True)[:1], *half]), -1)


def _has_constant_beyond(suspect: Suspect, op: int) -> bool:
    return any(abs(constant.value) > _LARGEST_HALF for constant in suspect.topology.trace.ops[op].constants)


def _is_half(suspect: Suspect, op: int) -> bool:
    outputs = suspect.topology.trace.ops[op].outputs
    return any(tensor.dtype == "float16" for tensor in outputs)


def singular_here(suspect: Suspect) -> Verdict | None:
    """The functions that leave the finite numbers at a point of their own: sqrt at 0, log at 0, 0/0, exp."""
    return None if _passes_on(suspect) else accused(suspect, suspect.culprit)


def last_resort_input(suspect: Suspect) -> Verdict | None:
    """The batch holds NaN that the loss does not show (a ReLU makes zeros of it), and nothing else explains it."""
    return Verdict("nonfinite_input", "error", NO_OP) if suspect.measured.nonfinite_inputs else None


def not_finite(suspect: Suspect) -> Verdict | None:
    """Not finite for a reason that the measured values do not tell: the op is named."""
    return Verdict("not_finite", "error")


def accused(suspect: Suspect, op: int) -> Verdict | None:
    """The verdict on an op that can leave the finite numbers; null if it cannot."""
    trace = suspect.topology.trace
    cause = CAUSE.get(trace.ops[op].type)
    if cause is None or (cause == "pow_fraction_at_zero" and _is_whole_power(suspect, op)):
        return None
    if cause in ("exp_overflow", "log_zero") and _is_bounded(suspect, op):
        return None
    if cause == "zero_over_zero" and constant_of(trace.ops[op], 1):
        return None  # nobody's divisor is zero there
    place = {"zero_over_zero": 1, "log_zero": 0}.get(cause, -1) if op != suspect.culprit or cause != "log_zero" else -1
    overflown = _exponential_in(suspect, op, place)
    if overflown >= 0:
        return Verdict("exp_overflow", "error", overflown)
    return Verdict(cause, "error", op)


def _is_whole_power(suspect: Suspect, op: int) -> bool:
    """A square or cube is finite wherever its argument is."""
    exponent = constant_of(suspect.topology.trace.ops[op], 1)
    return exponent is not None and exponent >= 1 and float(exponent).is_integer()


def _is_bounded(suspect: Suspect, op: int) -> bool:
    """Whether an exponential is of nothing above zero, or a logarithm of what has a floor above zero, or either belongs
    to TensorFlow's own stable cross entropy, whose logarithm is of one or more: only NaN that comes in makes NaN of
    it."""
    trace = suspect.topology.trace
    if "/logistic_loss/" in trace.ops[op].name:
        return True
    if trace.ops[op].type == "Log":
        return any(_has_floor(trace.ops[edge.op]) for edge in trace.ops[op].inputs if edge.op >= 0)
    return trace.ops[op].type == "Exp" and any(is_never_positive(trace, edge.op) for edge in trace.ops[op].inputs)


def _has_floor(op: Op) -> bool:
    """Whether no element of a value is less than a constant above zero."""
    places = {"Maximum": (0, 1), "ClipByValue": (1,)}.get(op.type, ())
    return any((constant_of(op, place) or 0.0) > 0.0 for place in places)


def _passes_on(suspect: Suspect) -> bool:
    """Whether NaN went into the op: a gradient without zeros became NaN where the op itself would make it infinite."""
    if suspect.op.type not in _INFINITE_THERE or suspect.measured.loss_is_finite(suspect.target):
        return False
    if suspect.producer < 0 or len(suspect.topology.onward(suspect.producer)) > 1:
        return False
    incoming = suspect.measured.of_op(suspect.target, suspect.culprit)
    outgoing = suspect.measured.of_op(suspect.target, suspect.producer)
    if incoming is None or outgoing is None or not outgoing.nan_count or outgoing.inf_count:
        return False
    return incoming.zero_fraction == 0 or _is_power_by_hand(suspect)


def _is_power_by_hand(suspect: Suspect) -> bool:
    """Whether an exponential is of a logarithm and a factor, `exp(k * log(x))`. That grows no faster than a power, and
    is NaN where the logarithm is: below zero, as at places that a mask leaves out of the loss afterwards."""
    trace = suspect.topology.trace

    def before(op: int) -> Sequence[int]:
        return suspect.topology.sources(op) if trace.ops[op].type in _FACTORS else ()

    factors = walked(suspect.topology.sources(suspect.culprit), before)
    return suspect.op.type == "Exp" and any(suspect.type_of(op) == "Log" for op in factors)


def _exponential_in(suspect: Suspect, function: int, place: int) -> int:
    """The exponential that a divisor, or what a logarithm is taken of, is a sum of: too large, it is infinite, and a
    sum with it is not zero. -1 if there is none."""
    trace = suspect.topology.trace
    start = [edge.op for edge in trace.ops[function].inputs if edge.input == place]

    def before(op: int) -> Sequence[int]:
        return [edge.op for edge in trace.ops[op].inputs] if trace.ops[op].type in _SUMMING else ()

    return next((op for op in walked(start, before) if trace.ops[op].type in ("Exp", "Cosh", "Sinh")), -1)
