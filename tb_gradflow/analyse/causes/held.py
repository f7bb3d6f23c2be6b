"""Products whose factors a limit holds at zero, all of them: no slope is left, whichever factor is asked."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import constant_of
from tb_gradflow.analyse.step.measured import is_zero

# Zeros stay zeros through these, and nothing else becomes one.
_HANDING_ON = frozenset(
    {"Identity", "Reshape", "Cast", "Squeeze", "ExpandDims", "StridedSlice", "Slice", "GatherV2", "Unpack", "Split"}
)


def held_at_zero(suspect: Suspect) -> Verdict | None:
    """The overlap of boxes that do not touch: `maximum(x, 0)` makes width and height, and their product has no slope
    where both are zero. What the limit itself hands on plays no part, for nothing arrives there."""
    if suspect.op.type != "Mul" or suspect.measured.is_learned(suspect.target):
        return None
    factors = [edge.op for edge in suspect.op.inputs]
    gradients = [suspect.measured.of_op(suspect.target, factor) for factor in factors if factor >= 0]
    if len(factors) < 2 or len(gradients) < 2 or not all(each is not None and is_zero(each) for each in gradients):
        return None
    limits = [_limit_of(suspect, factor) for factor in factors]
    return Verdict("saturation_clip", "warning", limits[0]) if min(limits) >= 0 else None


def _limit_of(suspect: Suspect, op: int) -> int:
    """The `maximum(x, 0)` that a value comes from; -1 if it comes from anything else."""
    ops = suspect.topology.trace.ops
    while op >= 0 and ops[op].type in _HANDING_ON:
        given = [edge.op for edge in ops[op].inputs if edge.op >= 0]
        op = given[0] if len(given) == 1 else -1
    at_zero = op >= 0 and ops[op].type == "Maximum" and 0.0 in (constant_of(ops[op], 0), constant_of(ops[op], 1))
    return op if at_zero else -1
