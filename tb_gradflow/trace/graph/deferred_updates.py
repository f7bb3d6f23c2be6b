"""Finds what the user's own lines do to updates: gradients that a step adds up in variables, updates that it makes only
under a condition, and values that it puts in the place of an update."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.trace.graph.differentiable import shape_of
from tb_gradflow.trace.graph.flat_ops import FlatOp, Ref, consumers
from tb_gradflow.trace.graph.flatten import BRANCHES, Flattener, is_write
from tb_gradflow.trace.graph.gradient_call import Call

# Ops that people apply to a gradient before adding it up: dividing by the number of steps, clipping, casting. A norm
# has another shape, or is computed from squares.
_ELEMENTWISE = frozenset(
    {"Identity", "Mul", "RealDiv", "DivNoNan", "Cast", "Neg", "Sub", "Select", "SelectV2", "ClipByValue", "Minimum"}
    | {"Maximum", "Reshape", "StopGradient", "CheckNumerics"}
)
_SUMS = frozenset({"Add", "AddV2", "AddN"})
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
    """The replaced updates of one call, whose flat ops are those of the whole step."""
    flattener, updated = call.flattener, set[int]()
    for op in flattener.ops:
        if op.writes not in call.given or op.writes is None:
            continue
        if _is_of_optimizer(flattener, op):
            updated.add(op.writes)
        elif op.writes in updated and op.type == "AssignVariableOp" and op.inputs:
            shares = _shares(flattener.ops, op.inputs[-1].ref)
            own = shares.pop(op.writes, 0.0)
            by = max(shares, key=lambda variable: shares[variable], default=None)
            if by is not None and shares[by] > _MOST and abs(own) < _MOST:
                yield ReplacedUpdate(op.writes, by, shares[by], op)


_MOST = 0.5


def _shares(ops: Sequence[FlatOp], ref: Ref) -> dict[int, float]:
    """A value as a sum of variables, each with a constant factor; empty if it is anything else."""
    op = ops[ref.op]
    if op.reads is not None:
        return {op.reads: 1.0}
    if op.type == "Identity":
        return _shares(ops, op.inputs[0].ref) if op.inputs else {}
    total: dict[int, float] = {}
    if op.type in ("Mul", "RealDiv"):
        for each in op.inputs:
            factor = tf.get_static_value(op.op.inputs[1 - each.slot])
            if factor is None or np.ndim(factor) or not factor or (op.type == "RealDiv" and each.slot):
                continue
            scale = float(factor) if op.type == "Mul" else 1.0 / float(factor)
            return {variable: share * scale for variable, share in _shares(ops, each.ref).items()}
    elif op.type in (*_SUMS, "Sub") and len(op.inputs) == len(op.op.inputs):
        for each in op.inputs:
            sign = -1.0 if op.type == "Sub" and each.slot else 1.0
            part = _shares(ops, each.ref)
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
    ops = call.flattener.ops
    branches = {
        f"{operation.name}/": operation
        for operation in call.flattener.graph.get_operations()
        if operation.type in BRANCHES
    }
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
        elif op.type in _ELEMENTWISE | _SUMS and op.tensors and shape_of(op.tensors[0]) == shape:
            waiting.extend(users.get(place, ()))
    return None


def _adds_to_own_value(ops: Sequence[FlatOp], write: FlatOp) -> bool:
    """Whether the value assigned to a variable is the sum of its old value and something else."""
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
        if op.type in _ELEMENTWISE | _SUMS:
            sums = sums or op.type in _SUMS
            waiting.extend(each.ref.op for each in op.inputs)
    return False
