"""How a step's tensors relate to the graph as which it is recorded. In a traced step they belong to that graph."""

from __future__ import annotations

import contextlib
from typing import Any

import tensorflow as tf

from tb_gradflow.record.schema import SNAPSHOT
from tb_gradflow.trace.graph.flat_ops import Known


class Symbols:
    """The relation for a traced step; other kinds of steps override it."""

    by_tape = True

    def knows(self, tensor: Any) -> bool:
        """Whether a tensor belongs to the recorded step."""
        return isinstance(tensor, tf.Tensor) and hasattr(tensor, "graph")

    def graph_now(self) -> Any:
        """The graph in which the step's ops are created."""
        return tf.compat.v1.get_default_graph()

    def symbol(self, tensor: Any) -> Any:
        """The symbol of a tensor of the step in its graph: in a traced step the tensor itself."""
        return tensor

    def actual(self, symbol: Any) -> Any:
        """The tensor of the step that `symbol` represents; None if there is none."""
        return symbol

    def recording(self) -> contextlib.AbstractContextManager[None]:
        """Open while the step runs."""
        return contextlib.nullcontext()

    def more(self) -> dict[str, Any]:
        """Tensors that the step must return in addition to its statistics, each with a unique name."""
        return {}

    def finish(self) -> None:
        """Called when the step is over: adds facts to the flat ops that are known only now."""

    def origin(self, symbol: Any) -> Known:
        """The name of a tensor that no op of the step produced, and whose value came from a variable."""
        return Known(SNAPSHOT, "not_differentiable")
