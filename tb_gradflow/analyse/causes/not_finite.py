"""Gradients that are NaN or infinite: the op whose incoming gradient is finite and whose outgoing one is not.

If the loss itself is not finite, the forward pass broke first: then the op is looked for between the birthplace
and the variable.
"""

from __future__ import annotations

from itertools import pairwise

from tb_gradflow.analyse.evidence import Suspect, Verdict

_BY_TYPE = {
    "sqrt_at_zero": ("Sqrt", "Rsqrt", "EuclideanNorm"),
    "zero_over_zero": ("RealDiv", "Div", "Reciprocal", "Inv", "Xdivy"),
    "log_zero": ("Log", "Log1p", "Xlogy", "Xlog1py"),
    "exp_overflow": ("Exp", "Expm1", "Cosh", "Sinh"),
    "pow_fraction_at_zero": ("Pow",),
    "acos_at_one": ("Acos", "Asin", "Acosh", "Atanh", "Atan2"),
    "softmax_all_masked": ("Softmax", "LogSoftmax"),
}
CAUSE = {op_type: cause for cause, types in _BY_TYPE.items() for op_type in types}

_ELEMENTWISE = frozenset(
    {"Mul", "AddV2", "Add", "Sub", "Neg", "RealDiv", "Div", "Exp", "Log", "Log1p", "Sqrt", "Rsqrt", "Square", "Pow"}
    | {"Cast", "Identity", "Reciprocal", "Inv", "Reshape", "Acos", "Asin", "Tanh", "Sigmoid", "Abs", "Expm1"}
)


def where_inactive_branch(suspect: Suspect) -> Verdict | None:
    """`tf.where` hides the value, which is why the loss is finite, and not its derivative: zero times infinity.

    The evidence is the zeros in the incoming gradient, which mark the elements that were hidden.
    """
    if not suspect.measured.loss_is_finite(suspect.target):
        return None
    incoming = suspect.measured.of_op(suspect.target, suspect.culprit)
    if incoming is not None and incoming.zero_fraction == 0:
        return None
    trace = suspect.topology.trace
    way = suspect.topology.gradient(suspect.target).from_op(suspect.culprit)
    for op, after in pairwise(way):
        if trace.ops[after].type in ("Select", "SelectV2"):
            branches = [edge for edge in trace.ops[after].inputs if edge.op == op and edge.input > 0]
            return Verdict("where_inactive_branch", "error") if branches else None
        if trace.ops[after].type not in _ELEMENTWISE:
            return None
    return None


def by_op_type(suspect: Suspect) -> Verdict | None:
    """The functions that leave the finite numbers at a point of their own: sqrt at 0, log at 0, 0/0, exp."""
    if suspect.op.type in CAUSE:
        return Verdict(CAUSE[suspect.op.type], "error")
    if suspect.measured.loss_is_finite(suspect.target):
        return None
    culprit = _risky_before(suspect)
    return Verdict(CAUSE[suspect.type_of(culprit)], "error", culprit) if culprit >= 0 else None


def _risky_before(suspect: Suspect) -> int:
    """The op nearest to the birthplace, in front of it, that can leave the finite numbers."""
    trace = suspect.topology.trace
    queue, seen = [suspect.culprit], {suspect.culprit}
    for op in queue:  # grows while it is walked
        if trace.ops[op].type in CAUSE:
            return op
        for edge in trace.ops[op].inputs:
            if edge.op >= 0 and edge.op not in seen:
                seen.add(edge.op)
                queue.append(edge.op)
    return -1


def fp16_overflow(suspect: Suspect) -> Verdict | None:
    """Above 65504 half precision has infinity."""
    half = any(tensor.dtype == "float16" for tensor in suspect.op.outputs)
    return Verdict("fp16_overflow", "error") if half else None


def not_finite(suspect: Suspect) -> Verdict | None:
    """Not finite for a reason that the measured values do not tell: the op is named."""
    return Verdict("not_finite", "error")
