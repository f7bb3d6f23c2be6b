"""Finds what the user's own lines do to updates: gradients that a step adds up in variables, updates that it makes only
under a condition, and values that it puts in the place of an update."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.analyse.graph.op_sets import ADDITIONS
from tb_gradflow.trace.engine.definitions import BRANCHES
from tb_gradflow.trace.graph.differentiable import shape_of
from tb_gradflow.trace.graph.flat_ops import FlatOp, Ref, consumers
from tb_gradflow.trace.graph.flatten import Flattener, is_write
from tb_gradflow.trace.graph.gradient_call import Call

# Ops that people apply to a gradient before adding it up: dividing by the number of steps, clipping, casting. A norm
# has another shape, or is computed from squares.
_ELEMENTWISE = frozenset(
    {"Identity", "Mul", "RealDiv", "DivNoNan", "Cast", "Neg", "Sub", "Select", "SelectV2", "ClipByValue", "Minimum"}
    | {"Maximum", "Reshape", "StopGradient", "CheckNumerics"}
)
_ADDS = frozenset({"AssignAddVariableOp", "AssignSubVariableOp", "ResourceScatterAdd"})
_READS = frozenset({"ReadVariableOp", "Identity"})


@dataclass(frozen=True, slots=True)
class DeferredUpdate:
    """A variable whose gradient is added up, or which is updated only in a branch.

    Attributes:
        variable: Its index.
        sum: The op that adds the gradient to another variable; `None` if there is none.
        condition: The op whose branch updates the variable; `None` if there is none.
    """

    variable: int
    sum: FlatOp | None
    condition: Any


@dataclass(frozen=True, slots=True)
class ReplacedUpdate:
    """A variable to which the step assigns mostly the value of another one, after an optimizer has updated it.

    Attributes:
        variable: Its index.
        by: That of the other one.
        share: The factor of the other one.
        write: The op that assigns.
    """

    variable: int
    by: int
    share: float
    write: FlatOp


def replaced_by(call: Call) -> Iterator[ReplacedUpdate]:
    """The replaced updates of one call, whose flat ops are those of the whole step. The other variable must be one that
    the step does not change: what an algorithm such as Reptile keeps of the variable itself may well be put back."""
    flattener, last = call.flattener, dict[int, FlatOp]()
    branches = _branches(flattener)
    writes = [op for op in flattener.ops if op.writes is not None]
    written, updated = {op.writes for op in writes}, set[int | None]()
    for op in writes:
        if _is_of_optimizer(flattener, op):
            updated.add(op.writes)
        if op.writes in call.given and op.writes in updated and _branch_of(op, branches) is None:
            last[op.writes] = op
    for variable, op in last.items():
        if op.type != "AssignVariableOp" or not op.inputs or _is_of_optimizer(flattener, op):
            continue
        shares = _shares(flattener.ops, op.inputs[-1].ref, {})
        own = shares.pop(variable, 0.0)
        by = max(shares, key=lambda other: shares[other], default=None)
        if by is not None and by not in written and shares[by] > _MOST and abs(own) < _MOST:
            yield ReplacedUpdate(variable, by, shares[by], op)


_MOST = 0.5

# What is computed in more ops than this is no average of two variables.
_FEW = 50


def _shares(ops: Sequence[FlatOp], ref: Ref, known: dict[int, dict[int, float]]) -> dict[int, float]:
    """A value as a sum of variables, each with a constant factor; empty if it is anything else."""
    if ref.op not in known:
        known[ref.op] = {}
        known[ref.op] = _summed_up(ops, ops[ref.op], known) if len(known) <= _FEW else {}
    return known[ref.op]


def _summed_up(ops: Sequence[FlatOp], op: FlatOp, known: dict[int, dict[int, float]]) -> dict[int, float]:
    if op.reads is not None:
        return {op.reads: 1.0} if op.type in _READS else {}
    if op.type == "Identity" and op.inputs:
        return _shares(ops, op.inputs[0].ref, known)
    total: dict[int, float] = {}
    if op.type in ("Mul", "RealDiv") and len(op.op.inputs) == 2:
        for each in op.inputs:
            factor = tf.get_static_value(op.op.inputs[1 - each.slot])
            if factor is None or np.ndim(factor) or np.iscomplexobj(factor) or not factor:
                continue
            if op.type == "Mul" or each.slot == 0:
                scale = float(factor) if op.type == "Mul" else 1.0 / float(factor)
                return {variable: share * scale for variable, share in _shares(ops, each.ref, known).items()}
    elif op.type in (*ADDITIONS, "Sub") and len(op.inputs) == len(op.op.inputs):
        for each in op.inputs:
            sign = -1.0 if op.type == "Sub" and each.slot else 1.0
            part = _shares(ops, each.ref, known)
            if not part:
                return {}
            for variable, share in part.items():
                total[variable] = total.get(variable, 0.0) + sign * share
    return total


def deferred_by(call: Call) -> Iterator[DeferredUpdate]:
    """The deferred updates of one call. Adds the ops of the rest of the step to its flat ops; variables that are always
    updated are not included."""
    if not call.given:
        return
    call.flattener.extend()
    ops, branches = call.flattener.ops, _branches(call.flattener)
    users = consumers(ops)
    always = {op.writes for op in ops if op.writes is not None and _branch_of(op, branches) is None}
    for variable, symbol in call.given.items():
        if variable in always:
            continue
        total = _sum_of(call.flattener, symbol, users, branches)
        condition = next(
            (
                branch
                for op in ops
                if op.writes == variable
                and (branch := _branch_of(op, branches)) is not None
                and branch.name not in call.flattener.of_optimizers
            ),
            None,
        )
        if total is not None or condition is not None:
            yield DeferredUpdate(variable, total, condition)


def _branches(flattener: Flattener) -> Mapping[str, Any]:
    """The conditions of the step, by what the names of the ops in their branches begin with."""
    operations = flattener.graph.get_operations()
    return {f"{operation.name}/": operation for operation in operations if operation.type in BRANCHES}


def _branch_of(op: FlatOp, branches: Mapping[str, Any]) -> Any:
    """The condition that decides whether an op runs; `None` if it always runs."""
    if not op.nested:
        return None
    return next((branch for name, branch in branches.items() if op.name.startswith(name)), None)


def _is_of_optimizer(flattener: Flattener, op: FlatOp) -> bool:
    """Whether an optimizer has created an op, or the call of the function that contains it."""
    parts = op.name.split("/")
    return any("/".join(parts[:end]) in flattener.of_optimizers for end in range(1, len(parts) + 1))


def _sum_of(
    flattener: Flattener, symbol: Any, users: Mapping[int, Sequence[int]], branches: Mapping[str, Any]
) -> FlatOp | None:
    """The op that adds a gradient to a variable unconditionally; `None` if there is none."""
    ops, shape = flattener.ops, shape_of(symbol)
    ref = flattener.ref(symbol)
    waiting = list(users.get(ref.op, ())) if ref is not None else [user for user, _ in flattener.uses_of(symbol)]
    seen: set[int] = set()
    while waiting:
        place = waiting.pop()
        op = ops[place]
        if place in seen or _is_of_optimizer(flattener, op) or _branch_of(op, branches) is not None:
            continue
        seen.add(place)
        if is_write(op.type):
            if op.type in _ADDS or (op.type == "AssignVariableOp" and _adds_to_own_value(ops, op)):
                return op
        elif op.type in _ELEMENTWISE | ADDITIONS and op.tensors and shape_of(op.tensors[0]) == shape:
            waiting.extend(users.get(place, ()))
    return None


def _adds_to_own_value(ops: Sequence[FlatOp], write: FlatOp) -> bool:
    """Whether the value assigned to a variable is the sum of its old value and something else. An average, such as that
    of Adam, has a constant part of the old value alone."""
    handle = write.op.inputs[0]
    waiting, seen, sums = [each.ref.op for each in write.inputs], set[int](), False
    while waiting:
        place = waiting.pop()
        op = ops[place]
        if place in seen:
            continue
        seen.add(place)
        if op.op.type in _READS and any(each is handle for each in op.op.inputs):
            return sums
        if op.type in _ELEMENTWISE | ADDITIONS and not _is_part(op):
            sums = sums or op.type in ADDITIONS
            waiting.extend(each.ref.op for each in op.inputs)
    return False


def _is_part(op: FlatOp) -> bool:
    """Whether it multiplies by a constant other than one."""
    factors = [tf.get_static_value(each) for each in op.op.inputs] if op.type in ("Mul", "RealDiv") else []
    return any(each is not None and np.ndim(each) == 0 and each != 1 for each in factors)
