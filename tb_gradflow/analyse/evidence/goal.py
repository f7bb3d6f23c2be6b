"""Losses that have reached zero, which is the minimum of most losses, and the maximum of some."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.op_sets import constant_of
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.record.schema import Op

# Their output is never negative.
_POSITIVE = frozenset({"Exp", "Sigmoid", "Softmax", "Softplus", "Square", "SquaredDifference", "Abs", "Relu", "Relu6"})

# Their output has the sign of the input.
_SIGN_KEEPING = frozenset(
    {"Sum", "Mean", "Max", "Min", "Reshape", "Squeeze", "ExpandDims", "Identity", "Cast", "Transpose", "BroadcastTo"}
    | {"AddV2", "Add", "AddN", "Pack", "ConcatV2", "StridedSlice", "GatherV2"}
)


def is_at_goal(suspect: Suspect) -> bool:
    """Whether the loss is close to zero, and zero is not its maximum: `-sum(exp(-x * x))` is zero if nothing fits at
    all."""
    return suspect.measured.is_learned(suspect.target) and not _is_negative(suspect)


def _is_negative(suspect: Suspect) -> bool:
    """Whether the loss is the negative of a value without a sign, which the suspect or an op after it computes."""
    ops = suspect.topology.trace.ops
    way = suspect.topology.gradient(suspect.target).from_op(suspect.culprit) if suspect.culprit >= 0 else ()
    sign, before = 0, -1
    for op in way:
        if ops[op].type in _POSITIVE:
            sign = 1
        elif ops[op].type not in _SIGN_KEEPING:
            sign *= _factor(ops[op], before)
        before = op
    return sign < 0


def _factor(op: Op, given: int) -> int:
    """The sign of the factor by which an op multiplies its input; 0 if it is not known."""
    if op.type == "Neg":
        return -1
    if op.type == "Sub":
        return -1 if [edge.input for edge in op.inputs if edge.op == given] == [1] else 1
    if op.type in ("Mul", "RealDiv"):
        known = [value for place in (0, 1) if (value := constant_of(op, place))]
        divisor_is_given = op.type == "RealDiv" and constant_of(op, 0) is not None
        return (1 if known[0] > 0 else -1) if known and not divisor_is_given else 0
    return 0


def is_last(topology: Topology, target: int, op: int) -> bool:
    """Whether the output of an op is not multiplied by any weight: then the loss follows."""
    ops = topology.trace.ops
    way = topology.gradient(target).from_op(op) if op >= 0 and target >= 0 else ()
    return (
        op >= 0
        and target >= 0
        and not any(
            ops[each].type in PRODUCTS
            and any(topology.of_variables[edge.op] and edge.op not in way[:place] for edge in ops[each].inputs)
            for place, each in enumerate(way)
            if place
        )
    )
