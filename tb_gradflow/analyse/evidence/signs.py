"""Which values cannot be positive, or cannot be negative, according to the ops that compute them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from tb_gradflow.analyse.graph.op_sets import ADDITIONS, CHOICES, LOOPS, constant_of
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.record.schema import Op, Trace

_NEVER_NEGATIVE = frozenset(
    {"Abs", "ComplexAbs", "Square", "SquaredDifference", "Relu", "Relu6", "Softplus", "Exp", "Sigmoid", "Softmax"}
    | {"Sqrt", "Rsqrt", "EuclideanNorm", "L2Loss"}
)
# All values of such an op have the same sign.
_KEEPING = frozenset(
    {"Identity", "StopGradient", "Cast", "Reshape", "Transpose", "Squeeze", "ExpandDims", "BroadcastTo", "Tile", "Sum"}
    | {"Mean", "Max", "Min", "Slice", "StridedSlice", "GatherV2", "GatherNd", "Cumsum"}
)
_ABOVE, _BELOW = frozenset({"Greater", "GreaterEqual"}), frozenset({"Less", "LessEqual"})
_PRODUCTS = frozenset({"Mul", "RealDiv", "Div", "DivNoNan"})

# Deep enough for a formula; ops that are farther away do not belong to it.
_DEEP = 24


def is_never_positive(trace: Trace, op: int) -> bool:
    """Whether no element of the op's first output is above zero."""
    return sign_of(trace, op) < 0


def sign_of(trace: Trace, op: int) -> int:
    """1 if no element is negative, -1 if none is positive, 0 if neither is known."""
    return _sign(trace, op, _DEEP, {})


def _sign(trace: Trace, op: int, deep: int, known: dict[tuple[int, int], int]) -> int:
    """`known` holds the results of other paths: nested sums have too many paths to follow each one."""
    if op < 0 or not deep:
        return 0
    if (op, deep) not in known:
        known[op, deep] = _found(trace, op, deep, known)
    return known[op, deep]


def _found(trace: Trace, op: int, deep: int, known: dict[tuple[int, int], int]) -> int:
    each = trace.ops[op]
    if any(tensor.dtype.startswith("complex") for tensor in each.outputs):
        return 0
    if each.type in _NEVER_NEGATIVE:
        return 1
    given = {edge.input: edge for edge in each.inputs if not edge.carried}
    first = given[0].op if 0 in given else -1
    if each.type in _KEEPING:
        return _sign(trace, first, deep - 1, known)
    if each.type == "Neg":
        return -_sign(trace, first, deep - 1, known)
    if each.type == "Sub":
        return -1 if _is_less_its_largest(trace, op) else 0
    if each.type == "Pow":
        power = constant_of(each, 1)
        return 1 if power is not None and power % 2 == 0 else 0
    if each.type in CHOICES:
        return _folded(trace, each, deep, known)
    if each.type not in ADDITIONS | _PRODUCTS:
        return 0
    # Old logs do not contain the number of inputs; none of these has fewer than two.
    count = each.input_count or max(2, len(each.inputs) + len(each.constants))
    if each.type in _PRODUCTS and _is_of_itself(each):
        return 1
    sides = []
    for side in range(count):
        constant = constant_of(each, side)
        if constant is not None:
            sides.append(-1 if constant < 0 else 1)
        else:
            sides.append(_sign(trace, given[side].op if side in given else -1, deep - 1, known))
    if each.type in _PRODUCTS:
        return sides[0] * sides[1]
    return sides[0] if len(set(sides)) == 1 else 0


def _folded(trace: Trace, choice: Op, deep: int, known: dict[tuple[int, int], int]) -> int:
    """The sign of `where(x >= 0, -x, x)` and similar expressions, as in TensorFlow's cross entropy; otherwise the sign
    that both sides have."""
    given = {edge.input: edge.op for edge in choice.inputs if not edge.carried}
    condition = trace.ops[given[0]] if given.get(0, -1) >= 0 else None
    sides = [given.get(place, -1) for place in (1, 2)]
    compared = {edge.input: edge.op for edge in condition.inputs} if condition is not None else {}
    value, above = compared.get(0, -1), condition is not None and condition.type in _ABOVE
    if condition is not None and value >= 0 and (above or condition.type in _BELOW) and _is_zero(trace, condition, 1):
        positive, negative = sides if above else sides[::-1]
        if positive == value and _is_negated(trace, negative, value):
            return 1
        if negative == value and _is_negated(trace, positive, value):
            return -1
    signs = [_sign(trace, side, deep - 1, known) for side in sides]
    return signs[0] if signs[0] == signs[1] else 0


def _is_negated(trace: Trace, op: int, value: int) -> bool:
    return op >= 0 and trace.ops[op].type == "Neg" and any(edge.op == value for edge in trace.ops[op].inputs)


def _is_zero(trace: Trace, op: Op, place: int) -> bool:
    made = next((edge.op for edge in op.inputs if edge.input == place), -1)
    return constant_of(op, place) == 0.0 or (made >= 0 and trace.ops[made].type == "ZerosLike")


def _is_of_itself(product: Op) -> bool:
    """Whether both factors are the same tensor."""
    factors = [(edge.op, edge.output) for edge in product.inputs if edge.op >= 0]
    return len(factors) == 2 and factors[0] == factors[1]


def _is_less_its_largest(trace: Trace, op: int) -> bool:
    """Whether the largest element of the left side is subtracted from it."""
    given = {edge.input: edge.op for edge in trace.ops[op].inputs}
    taken = given.get(1, -1)
    while taken >= 0 and trace.ops[taken].type in _HANDING_ON:
        # If the largest is infinite, `tf.reduce_logsumexp` subtracts zero.
        side = 1 if trace.ops[taken].type == "SelectV2" else 0
        taken = next((edge.op for edge in trace.ops[taken].inputs if edge.input == side), -1)
    largest = taken >= 0 and trace.ops[taken].type == "Max"
    return largest and any(edge.op == given.get(0, -2) and edge.input == 0 for edge in trace.ops[taken].inputs)


_HANDING_ON = ("StopGradient", "Identity", "Reshape", "ExpandDims", "Squeeze", "SelectV2")

_HANDING_ZEROS_ON = _KEEPING - {"Sum", "Mean", "Cumsum"} | {"SplitV", "Split", "ConcatV2", "Pack", "Unpack", "Abs"}
# The input of a function that must not be zero.
_NOT_ZERO = {"Log": 0, "RealDiv": 1, "Div": 1, "Reciprocal": 0, "Inv": 0, "Xdivy": 1}


def relu_behind(trace: Trace, op: int) -> int:
    """The ReLU that produces the zero that a logarithm or a division must not get, possibly reshaped, multiplied by a
    constant, or concatenated with other values; -1 if there is none."""
    place = _NOT_ZERO.get(trace.ops[op].type, -1) if op >= 0 else -1
    start = [edge.op for edge in trace.ops[op].inputs if edge.input == place] if place >= 0 else []

    def before(made: int) -> Sequence[int]:
        given = [edge.op for edge in trace.ops[made].inputs]
        is_scaled = trace.ops[made].type == "Mul" and len([each for each in given if each >= 0]) == 1
        return given if is_scaled or trace.ops[made].type in _HANDING_ZEROS_ON else ()

    return next((made for made in walked(start, before) if trace.ops[made].type in ("Relu", "Relu6")), -1)


# Through these, a sum or product of exponentials that are all zero stays zero.
_GATHERING = _KEEPING | ADDITIONS | LOOPS | {"MatMul", "BatchMatMulV2", "Mul", "Einsum", "Prod"}


def vanishing_exponential(trace: Trace, value: int) -> int:
    """The exponential from which a value is computed by sums or products, if its input is never positive and may be far
    below zero; -1 if there is none."""

    def before(op: int) -> Sequence[int]:
        return [edge.op for edge in trace.ops[op].inputs] if trace.ops[op].type in _GATHERING else ()

    for op in islice(walked([value], before), _DEEP):
        given = next((edge.op for edge in trace.ops[op].inputs if edge.input == 0), -1)
        if trace.ops[op].type == "Exp" and is_never_positive(trace, given) and trace.ops[given].type != "Sub":
            return op
    return -1
