"""The ops of an inner gradient, and the ops that they differentiate."""

from __future__ import annotations

from tb_gradflow.record.schema import Trace


def forward_of(trace: Trace, index: int) -> int:
    """The op of the forward pass whose derivative an op of an inner gradient computes; -1 if it is not known."""
    ops, kind = trace.ops, trace.ops[index].type
    stems = [place for place, op in enumerate(ops) if not op.backward and op.type and kind.startswith(op.type)]
    return max(stems, key=lambda place: len(ops[place].type), default=-1)
