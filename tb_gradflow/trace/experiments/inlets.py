"""Lets an op of a function be given another value than the one that was computed for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.engine.additions import SCOPE
from tb_gradflow.trace.engine.calls import CallSite
from tb_gradflow.trace.engine.cells import Cell
from tb_gradflow.trace.engine.definitions import Definition, new_node


class Inlet:
    """An input of an op, to which something is added.

    Args:
        op: An op of one of the function's graphs.
        number: Which of its inputs: a floating one.

    Attributes:
        by: What is added: a tensor of the same shape, or a number.
    """

    def __init__(self, op: Any, number: int) -> None:
        self.op = op
        self.number = number
        self.by = Cell(self.tensor.dtype)
        self.stay()

    @property
    def tensor(self) -> Any:
        return self.op.inputs[self.number]

    def stay(self) -> None:
        """Adds nothing."""
        self.by.write(tf.zeros([], self.tensor.dtype))


class Moved:
    """An edit: these ops are given the sums.

    Args:
        inlets: Their inputs.
        everywhere: Whether all other ops that use the same tensors are given the sums too, such as those that compute
            the gradients.

    Attributes:
        apart: See `Edit`.
    """

    apart: frozenset[str] = frozenset()

    def __init__(self, inlets: Iterable[Inlet], *, everywhere: bool = False) -> None:
        self._inlets = list(inlets)
        self._everywhere = everywhere

    def changes(self, place: CallSite) -> bool:
        return any(each.op.graph is place.graph for each in self._inlets)

    def make(self, definition: Definition, place: CallSite) -> Sequence[Any]:
        for number, each in enumerate(self._inlets):
            if each.op.graph is place.graph:
                scope = f"{SCOPE}/moved_{number}"
                node = definition.node(each.op.name)
                own = [node.input[each.number], f"{scope}:value:0"]
                if self._everywhere:
                    definition.redirect({own[0]: f"{scope}/sum:z:0"})
                definition.proto.node_def.extend(each.by.reading(scope))
                definition.proto.node_def.append(new_node(f"{scope}/sum", "AddV2", own, T=each.tensor.dtype))
                node.input[each.number] = f"{scope}/sum:z:0"
        return []
