"""Differences between neighbours, which remove what all of them have in common."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.graph.op_sets import SUMS_OF_TWO, shape_along
from tb_gradflow.record.schema import Op, Trace

# An offset of all elements of the input becomes an offset of all elements of the output.
_MOVING = frozenset(
    {"Identity", "Reshape", "Squeeze", "ExpandDims", "Cast", "Transpose", "BroadcastTo", "Tile", "ReverseV2"}
    | {"GatherV2", "GatherNd", "StridedSlice", "Slice", "Split", "SplitV", "Unpack", "TopKV2"}
    | {"Max", "Min", "Mean", "Select", "SelectV2"}
)

_SCALING = frozenset({"Mul", "RealDiv"})
_MOST = 40


def difference_behind(suspect: Suspect, shift: int) -> int:
    """The first `Sub` that removes what is added to all elements at `shift`: pairs of scores are compared, or their
    mean or maximum is subtracted. -1 if some path does not lead to such a difference. The measured gradient decides
    whether every path removes all of it.
    """
    ops, topology = suspect.topology.trace.ops, suspect.topology
    behind = {shift}
    queue = [shift]
    for op in queue:  # grows while it is walked
        if len(queue) > _MOST:
            return -1
        added = [user for user in topology.onward(op) if user not in behind and _keeps_or_ends(ops[user])]
        behind.update(added)
        queue.extend(added)
    scale = {shift: shift}
    first = -1
    for op in sorted(behind - {shift}):  # in the order in which they are computed
        given = [scale[edge.op] for edge in ops[op].inputs if edge.op in scale]
        if not given:
            continue
        if ops[op].type == "Sub" and len(given) == 2 and given[0] == given[1]:
            first = op if first < 0 else first
        elif ops[op].type in _MOVING or (ops[op].type in SUMS_OF_TWO and len(given) == 1):
            scale[op] = given[0]
        elif ops[op].type in _SCALING and len(given) == 1 and _by_one_number(suspect.topology.trace, op, scale):
            scale[op] = op
        else:
            return -1
    ends = [user for op in scale for user in topology.onward(op)]
    return first if all(user in behind for user in ends) else -1


def _keeps_or_ends(op: Op) -> bool:
    return op.type in _MOVING | _SCALING | SUMS_OF_TWO


def _by_one_number(trace: Trace, op: int, scale: dict[int, int]) -> bool:
    """Whether all elements are multiplied by the same number."""
    others = [edge for edge in trace.ops[op].inputs if edge.op >= 0 and edge.op not in scale]
    shapes = [shape_along(trace, edge) for edge in others]
    return all(shape is not None and all(size == 1 for size in shape) for shape in shapes)
