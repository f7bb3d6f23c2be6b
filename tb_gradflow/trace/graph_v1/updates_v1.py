"""The updates that an optimizer of TensorFlow 1 has added to a graph, and their effect on the elements of a
variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_gradflow.record.schema import Movement, Optimizer
from tb_gradflow.trace.graph_v1.gradients_v1 import Built, opened
from tb_gradflow.trace.graph_v1.graph_copy import twin_of
from tb_gradflow.trace.graph_v1.values_v1 import Values, value_of
from tb_gradflow.trace.numerics.statistics_table import Block, StatisticsTable

_PREFIXES = ("ResourceApply", "Apply")

GIVEN = ("grad", "lr")
"""The names of the inputs that show what an update does."""

# The names of the ops' inputs that keep earlier gradients which move weights later.
_MEMORIES = frozenset({"m", "mom", "linear"})

# `ApplyMomentum` uses the name that other ops use for a sum of squares.
_MOMENTUM = frozenset({"Momentum", "KerasMomentum"})


@dataclass(frozen=True, slots=True)
class Update:
    """The op that updates one variable with a dense gradient.

    Attributes:
        variable: Index of the variable.
        op: The op.
        given: Its inputs by their names in the op's definition.
    """

    variable: int
    op: Any
    given: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """The optimizer, such as `Adam`."""
        return str(self.op.type).removeprefix("Resource").removeprefix("Apply").removesuffix("V2")

    @property
    def memories(self) -> list[Any]:
        """The handles or references of the optimizer's memory."""
        names = _MEMORIES | ({"accum"} if self.kind in _MOMENTUM else set())
        return [tensor for name, tensor in self.given.items() if name in names]

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer as in a log."""
        kind = "SGD" if self.kind == "GradientDescent" else self.kind
        return Optimizer(kind, bool(self.memories), False, "", False, 1, False, has_slots=True)


@dataclass(frozen=True, slots=True)
class Ran:
    """The inputs and the effect of an update: arrays of the variable's shape."""

    gradient: npt.NDArray[Any]
    before: npt.NDArray[Any]
    after: npt.NDArray[Any]
    memories: Sequence[npt.NDArray[Any]]
    rate: float


def updates_among(operations: Iterable[Any], sources: Mapping[int, Any]) -> list[Update]:
    """The updates among some ops of the variables whose handles or references are `sources`; none for a variable with
    several updates.
    """
    by_name = {tensor.op.name: index for index, tensor in sources.items()}
    found: dict[int, list[Update]] = {}
    for op in operations:
        index = by_name.get(op.inputs[0].op.name) if op.type.startswith(_PREFIXES) and op.inputs else None
        names = [argument.name for argument in op.op_def.input_arg] if index is not None else []
        if index is not None and len(names) == len(op.inputs):
            given = dict(zip(names, op.inputs, strict=True))
            if "delta" in given:  # plain gradient descent has other names
                given |= {"lr": given["alpha"], "grad": given["delta"]}
            found.setdefault(index, []).append(Update(index, op, given))
    return [listed[0] for listed in found.values() if len(listed) == 1]


def movement_of(update: Update, ran: Ran) -> list[float]:
    """The numbers of `record.schema.MOVEMENT_STATISTICS`, as `statistics` counts them in a step."""
    zero, changed = ran.gradient == 0, ran.after != ran.before
    remembers = np.any([memory != 0 for memory in ran.memories], axis=0) if ran.memories else np.zeros_like(zero)
    unmoved = ~zero & ~changed & np.isfinite(ran.gradient)
    step = ran.rate * (np.abs(ran.gradient) if update.kind == "GradientDescent" else 1.0)
    rounded = unmoved & (ran.rate > 0) & (step < np.abs(ran.before) * np.finfo(ran.before.dtype).eps / 2)
    counts = [np.count_nonzero(mask) for mask in (zero, zero & changed, zero & changed & remembers, unmoved, rounded)]
    return [*map(float, counts), ran.rate]


def movements(updates: Sequence[Update], table: StatisticsTable) -> tuple[Movement, ...]:
    """The updates as in a log; they represent the optimizers, in order. Their rows are added to the table."""
    block = Block()
    table.append(block)
    rows = [block.add() for _ in updates]
    number_of = table.numbers()
    return tuple(
        Movement(each.variable, place, number_of(row), 0.0, "")
        for place, (each, row) in enumerate(zip(updates, rows, strict=True))
    )


def run_updates(built: Built, values: Values, updates: Sequence[Update]) -> list[Ran]:
    """Runs the updates in the copy of the graph, and measures their effect. Raises CannotMeasureError if that is not
    possible.
    """
    twin = built.twin
    wanted = {
        (number, name): twin_of(tensor, twin)
        for number, update in enumerate(updates)
        for name, tensor in update.given.items()
        if name in GIVEN
    }
    with opened(built, values) as session:
        ops = [twin.get_operation_by_name(update.op.name) for update in updates]
        seen, _ = session.run((wanted, ops), values.fed)
        after = session.run([twin_of(value_of(update.op.inputs[0].op), twin) for update in updates])
    return [
        Ran(
            gradient=np.asarray(seen[number, "grad"]),
            before=np.asarray(values.variables[update.op.inputs[0].op.name]),
            after=np.asarray(now),
            memories=[np.asarray(values.variables[tensor.op.name]) for tensor in update.memories],
            rate=float(seen.get((number, "lr"), np.nan)),
        )
        for number, (update, now) in enumerate(zip(updates, after, strict=True))
    ]
