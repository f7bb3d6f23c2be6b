"""Which cause it is when the result of an op is not finite because of its singular point."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.signs import is_never_positive, sign_of
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import OVERFLOWING, constant_of
from tb_gradflow.analyse.step.birth import is_cleared
from tb_gradflow.record.schema import Op, Trace

_BY_TYPE = {
    "sqrt_at_zero": ("Sqrt", "Rsqrt", "EuclideanNorm"),
    "zero_over_zero": ("RealDiv", "Div", "Reciprocal", "Inv", "Xdivy", "Angle", "Atan2"),
    "log_zero": ("Log", "Log1p", "Xlogy", "Xlog1py"),
    "exp_overflow": OVERFLOWING,
    "pow_fraction_at_zero": ("Pow",),
    "acos_at_one": ("Acos", "Asin", "Acosh", "Atanh"),
    "softmax_all_masked": ("Softmax", "LogSoftmax"),
    "degenerate_decomposition": (
        *("Cholesky", "Svd", "SelfAdjointEigV2", "Eig", "Qr", "LogMatrixDeterminant", "MatrixInverse", "MatrixSolve"),
        *("MatrixTriangularSolve", "MatrixSolveLs", "MatrixSquareRoot"),
    ),
}

CAUSE_OF_TYPE = {op_type: cause for cause, types in _BY_TYPE.items() for op_type in types}

# At their singular point, a gradient other than zero becomes infinite. If NaN comes out, NaN went in.
_INFINITE_THERE = frozenset({"Log", "Log1p", "Exp", "Expm1"})

_FACTORS = frozenset({"Mul", "RealDiv", "Neg", "Identity", "Cast", "Reshape", "ExpandDims", "Squeeze", "BroadcastTo"})

# These keep a positive sum positive.
_SUMMING = frozenset(
    {"Sum", "Mean", "AddV2", "Add", "AddN", "BiasAdd", "Reshape", "ExpandDims", "Squeeze", "Identity", "Cast", "Cumsum"}
    | {"BroadcastTo", "Transpose", "Max"}
)


def singular_here(suspect: Suspect) -> Verdict | None:
    """The functions with a singular point: sqrt at 0, log at 0, 0/0, exp."""
    return None if _passes_on(suspect) else accused(suspect, suspect.culprit)


def accused(suspect: Suspect, op: int) -> Verdict | None:
    """The verdict on an op that can produce NaN or infinity; None if it cannot."""
    trace = suspect.topology.trace
    cause = CAUSE_OF_TYPE.get(trace.ops[op].type)
    if cause is None or (cause == "pow_fraction_at_zero" and _is_whole_power(suspect, op)):
        return None
    if cause in ("exp_overflow", "log_zero") and _is_bounded(suspect, op):
        return None
    if is_cleared(suspect.measured, suspect.target, op):
        return None
    if cause == "zero_over_zero" and constant_of(trace.ops[op], 1):
        return None  # a zero divisor is unlikely there
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
    """Whether the input of an exponential is never above zero, or that of a logarithm has a lower bound above zero, or
    either belongs to TensorFlow's stable cross entropy, whose logarithm is of one or more: then only a NaN in the input
    gives NaN."""
    trace = suspect.topology.trace
    if "/logistic_loss/" in trace.ops[op].name:
        return True
    if trace.ops[op].type == "Log":
        return any(_has_floor(trace, trace.ops[edge.op]) for edge in trace.ops[op].inputs if edge.op >= 0)
    return trace.ops[op].type == "Exp" and any(is_never_positive(trace, edge.op) for edge in trace.ops[op].inputs)


def _has_floor(trace: Trace, op: Op) -> bool:
    """Whether all elements of a value are at least a positive constant: a maximum with it, or its sum with a value that
    is never negative.
    """
    if op.type in ("AddV2", "Add"):
        added = max((constant.value for constant in op.constants), default=0.0)
        return added > 0.0 and any(sign_of(trace, edge.op) > 0 for edge in op.inputs)
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
    """Whether it is the exponential of a logarithm times a factor, `exp(k * log(x))`. This grows no faster than a
    power, and is NaN where the logarithm is: below zero, for example at positions that a mask leaves out of the loss
    afterwards."""
    factors = suspect.topology.behind(suspect.topology.sources(suspect.culprit), _FACTORS)
    return suspect.op.type == "Exp" and any(suspect.type_of(op) == "Log" for op in factors)


def _exponential_in(suspect: Suspect, function: int, place: int) -> int:
    """The exponential in the sum that is a divisor or the argument of a logarithm: if it is too large, it is infinite,
    and the sum is not zero. -1 if there is none."""
    trace = suspect.topology.trace
    start = [edge.op for edge in trace.ops[function].inputs if edge.input == place]
    summed = suspect.topology.behind(start, _SUMMING)
    return next((op for op in summed if trace.ops[op].type in ("Exp", "Cosh", "Sinh")), -1)
