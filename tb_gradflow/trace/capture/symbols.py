"""How a step's tensors relate to the graph that it is recorded as. In a traced step they are the graph's own."""

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
        """Whether a tensor belongs to the step as it is recorded."""
        return isinstance(tensor, tf.Tensor) and hasattr(tensor, "graph")

    def graph_now(self) -> Any:
        """The graph that the step's ops are made in."""
        return tf.compat.v1.get_default_graph()

    def symbol(self, tensor: Any) -> Any:
        """What stands for a tensor of the step in its graph: in a traced step the tensor itself."""
        return tensor

    def actual(self, symbol: Any) -> Any:
        """The tensor of the step that `symbol` stands for; null if there is none."""
        return symbol

    def recording(self) -> contextlib.AbstractContextManager[None]:
        """Open while the step runs."""
        return contextlib.nullcontext()

    def more(self) -> dict[str, Any]:
        """Tensors that the step is to hand out besides its numbers, each under a name of its own."""
        return {}

    def finish(self) -> None:
        """The step is over: adds to the flat ops what shows only now."""

    def origin(self, symbol: Any) -> Known:
        """What to call a tensor that no op of the step made, where its value came from a variable."""
        return Known(SNAPSHOT, "not_differentiable")
