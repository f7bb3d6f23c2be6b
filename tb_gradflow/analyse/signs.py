"""Which values cannot be positive, or cannot be negative, as far as the ops that make them tell."""

from __future__ import annotations

from tb_gradflow.analyse.kinds import LOOPS, constant_of
from tb_gradflow.record.schema import Trace

_NEVER_NEGATIVE = frozenset(
    {"Abs", "ComplexAbs", "Square", "SquaredDifference", "Relu", "Relu6", "Softplus", "Exp", "Sigmoid", "Softmax"}
    | {"Sqrt", "Rsqrt", "EuclideanNorm", "L2Loss"}
)
# The sign of one value of theirs is that of all their values.
_KEEPING = frozenset(
    {"Identity", "StopGradient", "Cast", "Reshape", "Transpose", "Squeeze", "ExpandDims", "BroadcastTo", "Tile", "Sum"}
    | {"Mean", "Max", "Min", "Slice", "StridedSlice", "GatherV2", "GatherNd", "Cumsum"}
)
_SUMS = frozenset({"AddV2", "Add", "AddN"})
_PRODUCTS = frozenset({"Mul", "RealDiv", "Div", "DivNoNan"})

# Deep enough for a formula; what is farther away is no part of one.
_DEEP = 24


def is_never_positive(trace: Trace, op: int) -> bool:
    """Whether no element of the op's first output is above zero."""
    return sign_of(trace, op) < 0


def sign_of(trace: Trace, op: int, deep: int = _DEEP) -> int:
    """1 if no element is negative, -1 if none is positive, 0 if neither is known."""
    if op < 0 or not deep:
        return 0
    each = trace.ops[op]
    if each.type in _NEVER_NEGATIVE:
        return 1
    given = {edge.input: edge.op for edge in each.inputs}
    if each.type in _KEEPING or each.type == "Neg":
        turned = -1 if each.type == "Neg" else 1
        return turned * sign_of(trace, given.get(0, -1), deep - 1)
    if each.type == "Sub":
        return -1 if _is_less_its_largest(trace, op) else 0
    if each.type in _PRODUCTS and given.get(0, -1) == given.get(1, -2):
        return 1
    if each.type not in _SUMS | _PRODUCTS:
        return 0
    count = each.input_count or len(each.inputs) + len(each.constants)
    signs = [_side(trace, op, given, side, deep) for side in range(count)]
    if each.type in _PRODUCTS:
        return signs[0] * signs[1] if count == 2 else 0
    return signs[0] if signs and len(set(signs)) == 1 else 0


def _side(trace: Trace, op: int, given: dict[int, int], side: int, deep: int) -> int:
    constant = constant_of(trace.ops[op], side)
    if constant is not None:
        return -1 if constant < 0 else 1
    return sign_of(trace, given.get(side, -1), deep - 1)


def _is_less_its_largest(trace: Trace, op: int) -> bool:
    """Whether the largest element of what stands on the left is taken away from it."""
    given = {edge.input: edge.op for edge in trace.ops[op].inputs}
    taken = given.get(1, -1)
    while taken >= 0 and trace.ops[taken].type in _HANDING_ON:
        # Where the largest is infinite, `tf.reduce_logsumexp` takes zero away.
        side = 1 if trace.ops[taken].type == "SelectV2" else 0
        taken = next((edge.op for edge in trace.ops[taken].inputs if edge.input == side), -1)
    largest = taken >= 0 and trace.ops[taken].type == "Max"
    return largest and any(edge.op == given.get(0, -2) and edge.input == 0 for edge in trace.ops[taken].inputs)


_HANDING_ON = ("StopGradient", "Identity", "Reshape", "ExpandDims", "Squeeze", "SelectV2")

_ROUTING = frozenset({"SplitV", "Split", "ConcatV2", "Pack", "Unpack"})
# Which of its inputs a function must not be given zero in.
_NOT_ZERO = {"Log": 0, "RealDiv": 1, "Div": 1, "Reciprocal": 0, "Inv": 0, "Xdivy": 1}


def relu_behind(trace: Trace, op: int) -> int:
    """The ReLU that makes what a logarithm or a division must not be given, in another shape or beside other values; -1
    if there is none."""
    place = _NOT_ZERO.get(trace.ops[op].type, -1) if op >= 0 else -1
    queue = [edge.op for edge in trace.ops[op].inputs if edge.op >= 0 and edge.input == place] if place >= 0 else []
    for made in queue:  # grows while it is walked
        each = trace.ops[made]
        if each.type in ("Relu", "Relu6"):
            return made
        if each.type in _ROUTING | {"Abs"} or (each.type in _KEEPING and each.type not in ("Sum", "Mean", "Cumsum")):
            queue.extend(edge.op for edge in each.inputs if edge.op >= 0 and edge.op not in queue)
    return -1


# A sum or product of exponentials that are all zero is zero through these.
_GATHERING = _KEEPING | _SUMS | LOOPS | {"MatMul", "BatchMatMulV2", "Mul", "Einsum", "Prod"}


def vanishing_exponential(trace: Trace, value: int) -> int:
    """The exponential of what is never positive, and may be far below zero, that a value is added up or multiplied up
    from; -1 if there is none."""
    queue = [value] if value >= 0 else []
    for op in queue:  # grows while it is walked
        each = trace.ops[op]
        given = next((edge.op for edge in each.inputs if edge.input == 0), -1)
        if each.type == "Exp" and is_never_positive(trace, given) and trace.ops[given].type != "Sub":
            return op
        if each.type in _GATHERING and len(queue) < _DEEP:
            queue.extend(edge.op for edge in each.inputs if edge.op >= 0 and edge.op not in queue)
    return -1
