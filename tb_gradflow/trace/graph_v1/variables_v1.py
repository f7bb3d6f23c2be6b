"""The variables of a `tf.compat.v1` graph, of both kinds: resources with a handle, and references.

They are told apart by the op that makes the handle or the reference, which is in the graph itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf

from tb_gradflow.errors import SetupError
from tb_gradflow.trace.graph.variables import Owned, Variables, raw_variable

MAKERS = frozenset({"VarHandleOp", "VariableV2", "Variable"})


class GraphVariables(Variables):
    """Variables of one graph, and tensors that somebody asks the gradient of.

    Raises SetupError for what is neither, or belongs to another graph.
    """

    def __init__(self, graph: Any, asked: Iterable[Any]) -> None:
        super().__init__()
        self._names: dict[str, int] = {}
        for variable in _parts(asked):
            self._admit(graph, variable)

    def sources(self) -> Iterator[tuple[int, Any]]:
        """The number of each, and the tensor of the graph that `tf.gradients` takes for it."""
        for index, item in enumerate(self._owned):
            yield index, source_of(item.variable)

    def tensors(self) -> Iterator[tuple[int, Any]]:
        """Those that are no variables."""
        return (
            (index, item.variable) for index, item in enumerate(self._owned) if isinstance(item.variable, tf.Tensor)
        )

    def of_handle(self, graph: Any, handle: Any) -> int | None:
        """The number of the variable that an op named so makes; a negative one if it is not among those asked for."""
        name = handle.op.name
        return self._names.get(name, -1 - self._unlisted.setdefault(name, len(self._unlisted)))

    def _is_computed(self, item: Owned) -> bool:
        return isinstance(item.variable, tf.Tensor)

    def _is_made(self, item: Owned) -> bool:
        return False  # a graph is made before anything in it runs

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
    """The tensor that a variable is in its graph: its handle, or the reference; a tensor is itself."""
    if isinstance(variable, tf.Tensor):
        return variable
    handle = getattr(variable, "handle", None)
    return handle if isinstance(handle, tf.Tensor) else variable._ref()


def _parts(asked: Iterable[Any]) -> Iterator[Any]:
    """A partitioned variable as the variables that it is made of."""
    for variable in asked:
        parts = getattr(variable, "_get_variable_list", None)
        yield from parts() if parts is not None else (variable,)
