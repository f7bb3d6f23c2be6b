"""Values that left an eager step unnoticed: a function outside of TensorFlow read a tensor's memory without a call.

Such a tensor has no consumer. If the loss depends on a constant that was created during the step, and the constant's
value shows that it was computed from that tensor, then the tensor came back as this constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tb_gradflow.record.schema import PYTHON
from tb_gradflow.trace.capture.snapshots import Fixed, fixed_in, lead_through
from tb_gradflow.trace.eager.shadow import Shadow
from tb_gradflow.trace.graph.flat_ops import FlatOp, Known, Ref, consumers
from tb_gradflow.trace.graph.flatten import Flattener
from tb_gradflow.trace.graph.gradient_call import Call
from tb_gradflow.trace.graph.reach import influenced_by, needed_for
from tb_gradflow.trace.numerics.derived_values import relation

UNSEEN = Known(PYTHON, "not_differentiable", api="NumPy")


def link_by_value(shadow: Shadow, calls: Iterable[Call], flattener: Flattener) -> None:
    """Continues the path of each variable without a gradient through the constant that was created from its last
    tensor."""
    for call in calls:
        needed = needed_for(flattener.ops, [ref.op for ref in call.targets])
        ends = list(_ends(call, flattener.ops, needed))
        if not ends:
            continue
        inside = [each for each in fixed_in(flattener) if shadow.is_inside(each.symbol)]
        back = [each for each in inside if any(op in needed for op, _ in each.uses)]
        for end in ends:
            _link(shadow, flattener, end, back)


def _ends(call: Call, ops: Sequence[FlatOp], needed: set[int]) -> Iterator[int]:
    """The forward ops whose outputs are unused, on the paths of variables that do not reach the target."""
    users = consumers(ops)
    for variable, answer in call.variables.items():
        reads = [index for index, op in enumerate(ops) if op.reads == variable and not op.backward]
        reached = influenced_by(ops, users, reads)
        if answer.outcome == "none" and not reached & needed:
            yield from (op for op in sorted(reached) if not users.get(op) and len(ops[op].tensors) == 1)


def _link(shadow: Shadow, flattener: Flattener, end: int, back: Sequence[Fixed]) -> None:
    tensor = shadow.actual(flattener.ops[end].tensors[0])
    if tensor is None or not tensor.dtype.is_floating:
        return
    for each in back:
        later = min(op for op, _ in each.uses) > end
        if later and relation(np.asarray(tensor.numpy()), each.value) is not None:
            lead_through(flattener, Ref(end, 0), each, f"{flattener.ops[end].name}/outside", UNSEEN)
