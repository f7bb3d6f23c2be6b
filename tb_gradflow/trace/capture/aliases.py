"""Tensors whose gradient has the same statistics as another one's, so that one measurement serves both.

If a tensor is used by only one op, and that op propagates its gradient element by element, the two gradients have the
same numbers, perhaps in another shape or order. Norms, fractions and counts depend on neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from tb_gradflow.analyse.graph.op_sets import OFFSETS, SHAPE_ONLY
from tb_gradflow.trace.graph.flat_ops import FlatOp, Ref, readers
from tb_gradflow.trace.graph.gradient_call import Answer

_REARRANGE = frozenset({"Identity", "Reshape", "Squeeze", "ExpandDims", "Transpose"})


def aliases(ops: Sequence[FlatOp], users: Mapping[int, Sequence[int]], needed: Set[int]) -> dict[Ref, Ref]:
    """For each output of an op whose gradient equals that of another op's first output, that other output.

    `needed` are the ops on which the target depends: other consumers of the tensor contribute no gradient to it.
    """
    found: dict[Ref, Ref] = {}
    for index in sorted(needed):
        if len(ops[index].tensors) != 1 or ops[index].nested:
            continue
        takers = [user for user in users.get(index, ()) if user in needed and ops[user].type not in SHAPE_ONLY]
        # An op that uses the tensor twice is in the list twice.
        if len(takers) == 1 and not ops[takers[0]].nested and _hands_on(ops[takers[0]], index):
            found[Ref(index, 0)] = Ref(takers[0], 0)
    return found


def plain_reads(ops: Sequence[FlatOp]) -> dict[int, list[int]]:
    """For each variable that is only read as a whole, at the top level, the ops that read it."""
    forward = {variable: [op for op in reads if not ops[op].backward] for variable, reads in readers(ops).items()}
    return {
        variable: reads
        for variable, reads in forward.items()
        if reads and all(ops[index].type == "ReadVariableOp" and not ops[index].nested for index in reads)
    }


def only_reads(ops: Sequence[FlatOp], answers: Mapping[int, Answer]) -> dict[Ref, Answer]:
    """A variable that is read once has the same gradient as the value read, so that value need not be measured."""
    return {
        Ref(reads[0], 0): answer
        for variable, reads in plain_reads(ops).items()
        if len(reads) == 1 and (answer := answers.get(variable)) is not None
    }


def _hands_on(user: FlatOp, producer: int) -> bool:
    [slot] = [item.slot for item in user.inputs if item.ref.op == producer]
    if user.type in _REARRANGE:
        return slot == 0
    if user.type not in OFFSETS:
        return False
    taken, result = user.op.inputs[slot].shape, user.tensors[0].shape
    # Unknown sizes may hide a broadcast, whose gradient is summed; a bias never broadcasts the value to which it is
    # added.
    if user.type == "BiasAdd":
        return slot == 0
    return bool(taken.is_fully_defined() and result.is_fully_defined() and taken == result)
