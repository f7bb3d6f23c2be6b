"""How a step's tensors relate to the graph as which it is recorded: everything in which kinds of steps differ for a
collector. In a step that TensorFlow traces, they are the graph's tensors. An eager step is recorded as another graph,
its shadow: see `eager.shadow_symbols`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import tensorflow as tf

from tb_gradflow.record.schema import SNAPSHOT
from tb_gradflow.trace.graph.flat_ops import Known
from tb_gradflow.trace.graph.flatten import Flattener
from tb_gradflow.trace.graph.gradient_call import Call
from tb_gradflow.trace.graph.variables import local
from tb_gradflow.trace.numerics.fusion import is_constant, recomputed
from tb_gradflow.trace.numerics.op_names import own_names


class Symbols(Protocol):
    """The relation for one step.

    Attributes:
        root: The graph as which the step is recorded.
        known: By op name, facts about the ops that the graph does not contain.
        fault: An exception for which the step cannot be recorded; `None` while there is none.
        runs_eagerly: Whether the ops of the step run as it calls them; else they are traced.
        has_zeros_for_none: Whether a missing gradient cannot be distinguished from zeros that the caller requested
            instead.
    """

    root: Any
    fault: Exception | None
    runs_eagerly: bool
    has_zeros_for_none: bool

    @property
    def known(self) -> Mapping[str, Known]: ...

    def check_request(self) -> None:
        """Raises SetupError if gradients of such a step cannot be recorded."""

    def knows(self, tensor: Any) -> bool:
        """Whether a tensor belongs to the step as it is recorded."""

    def graph_now(self) -> Any:
        """The graph in which the step's ops are created."""

    def symbol(self, tensor: Any) -> Any:
        """The symbol of a step's tensor in its graph."""

    def actual(self, symbol: Any) -> Any:
        """The tensor of the step that `symbol` represents; `None` if there is none."""

    def recording(self) -> contextlib.AbstractContextManager[None]:
        """Open while the step runs."""

    def own_work(self) -> contextlib.AbstractContextManager[None]:
        """While the context is open, ops belong to the recorder, not to the step."""

    def read(self, variable: Any) -> Any:
        """In the recorder's own work: the value of a variable, read by the step."""

    def value_of(self, target: Any) -> Any:
        """The differentiated value, without changing how the step rounds."""

    def is_constant(self, symbol: Any) -> bool:
        """Whether a tensor is known before the step runs."""

    def origin(self, symbol: Any) -> Known:
        """The name of a tensor that no op of the step computed, if its value came from a variable."""

    def more(self) -> dict[str, Any]:
        """Tensors that the step must return in addition to its statistics, each under a unique name."""

    def finish(self, flattener: Flattener, calls: Iterable[Call]) -> None:
        """The step is over: adds facts that are known only now to the flat ops of its graph."""


def is_of_graph(tensor: Any) -> bool:
    """Whether something is a tensor of a graph that TensorFlow traces a step into."""
    return isinstance(tensor, tf.Tensor) and hasattr(tensor, "graph")


class TracedSymbols:
    """The relation for a step that TensorFlow traces into the current graph: see `Symbols`."""

    runs_eagerly = False
    has_zeros_for_none = False

    def __init__(self) -> None:
        self.root = tf.compat.v1.get_default_graph()
        self.known: Mapping[str, Known] = {}
        self.fault: Exception | None = None

    def check_request(self) -> None:
        """Every request can be recorded."""

    def knows(self, tensor: Any) -> bool:
        return is_of_graph(tensor)

    def graph_now(self) -> Any:
        return tf.compat.v1.get_default_graph()

    def symbol(self, tensor: Any) -> Any:
        return tensor

    def actual(self, symbol: Any) -> Any:
        return symbol

    def recording(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def own_work(self) -> contextlib.AbstractContextManager[None]:
        return own_names()

    def read(self, variable: Any) -> Any:
        return local(variable).read_value()

    def value_of(self, target: Any) -> Any:
        return recomputed(target)

    def is_constant(self, symbol: Any) -> bool:
        return is_constant(symbol.op)

    def origin(self, symbol: Any) -> Known:
        return Known(SNAPSHOT, "not_differentiable")

    def more(self) -> dict[str, Any]:
        return {}

    def finish(self, flattener: Flattener, calls: Iterable[Call]) -> None:
        """For a traced step, everything is known already."""
