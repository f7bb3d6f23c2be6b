"""The variables of a `tf.compat.v1` graph, of both kinds: resources with a handle, and references.

They are identified by the op that creates the handle or the reference, which is in the graph itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf

from tb_gradflow.errors import SetupError
from tb_gradflow.trace.graph.flatten import is_write
from tb_gradflow.trace.graph.variables import Owned, Variables, raw_variable

MAKERS = frozenset({"VarHandleOp", "VariableV2", "Variable"})
_WRITES_OF_REFERENCES = ("Assign", "Scatter", "StridedSliceAssign", "Apply", "SparseApply")


def changes_variable(op_type: str) -> bool:
    """Whether ops of a type change a variable of either kind."""
    return is_write(op_type) or op_type.startswith(_WRITES_OF_REFERENCES) or op_type == "ResourceCountUpTo"


class GraphVariables(Variables):
    """Variables of one graph, and tensors for which a gradient is requested.

    Raises SetupError for anything else, and for variables or tensors of another graph.
    """

    def __init__(self, graph: Any, asked: Iterable[Any]) -> None:
        super().__init__()
        self._names: dict[str, int] = {}
        for variable in parts_of(asked):
            self._admit(graph, variable)

    def sources(self) -> Iterator[tuple[int, Any]]:
        """The index of each, and the tensor of the graph that represents it in `tf.gradients`."""
        for index, item in enumerate(self._owned):
            yield index, source_of(item.variable)

    def tensors(self) -> Iterator[tuple[int, Any]]:
        """Those that are not variables."""
        return (
            (index, item.variable) for index, item in enumerate(self._owned) if isinstance(item.variable, tf.Tensor)
        )

    def of_handle(self, graph: Any, handle: Any) -> int | None:
        """The index of the variable that an op of this name creates; a negative one if it was not requested."""
        name = handle.op.name
        return self._names.get(name, -1 - self._unlisted.setdefault(name, len(self._unlisted)))

    def _is_computed(self, item: Owned) -> bool:
        return isinstance(item.variable, tf.Tensor)

    def _is_made(self, item: Owned) -> bool:
        return False  # a graph is built before anything in it runs

    def _admit(self, graph: Any, variable: Any) -> None:
        raw = raw_variable(variable)
        is_variable = isinstance(raw, tf.Variable)
        if not is_variable and not isinstance(raw, tf.Tensor):
            raise SetupError(f"variables: expected variables or tensors of the loss's graph, got {variable!r:.80}")
        tensor = source_of(raw)
        if getattr(tensor, "graph", None) is not graph:
            raise SetupError(f"variables: {raw.name} belongs to a different graph than the loss")
        if tensor.name not in {source_of(item.variable).name for item in self._owned}:
            trainable = bool(raw.trainable) if is_variable else True
            if is_variable:
                self._names[tensor.op.name] = len(self._owned)
            self._owned.append(Owned(raw, raw.name.removesuffix(":0"), trainable, tracked=True))


def source_of(variable: Any) -> Any:
    """The tensor that represents a variable in its graph: its handle, or the reference; a tensor represents itself."""
    if isinstance(variable, tf.Tensor):
        return variable
    handle = getattr(variable, "handle", None)
    return handle if isinstance(handle, tf.Tensor) else variable._ref()


def parts_of(variables: Iterable[Any]) -> Iterator[Any]:
    """The variables, a partitioned one as its component variables."""
    for variable in variables:
        parts = getattr(variable, "_get_variable_list", None)
        yield from parts() if parts is not None else (variable,)
