"""The ops of an inner gradient, and the ops that they differentiate."""

from __future__ import annotations

from tb_gradflow.analyse.graph.op_sets import SAME_ELEMENTS
from tb_gradflow.record.schema import Trace


def forward_of(trace: Trace, index: int) -> int:
    """The op of the forward pass whose derivative an op of an inner gradient computes; -1 if it is not known."""
    ops, kind = trace.ops, trace.ops[index].type
    stems = [place for place, op in enumerate(ops) if not op.backward and op.type and kind.startswith(op.type)]
    return max(stems, key=lambda place: len(ops[place].type), default=-1)


_PARTS = frozenset({"StridedSlice", "Slice", "GatherV2", "Split", "SplitV", "Unpack"})


def is_slope(trace: Trace, target: int) -> bool:
    """Whether the target is an inner gradient itself, or a part of one, such as a column of it."""
    op = trace.targets[target].op
    while op >= 0 and not trace.ops[op].backward and trace.ops[op].type in _PARTS | SAME_ELEMENTS:
        op = max((edge.op for edge in trace.ops[op].inputs), default=-1)
    return op >= 0 and trace.ops[op].backward
