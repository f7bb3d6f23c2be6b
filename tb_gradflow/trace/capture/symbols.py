"""How a step's tensors relate to the graph that it is recorded as: all that a collector must know of the kind of step.

In a step that TensorFlow traces they are the graph's own. One that runs eagerly is recorded as another graph, its
shadow: see `eager.shadow_symbols`.
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


class Symbols(Protocol):
    """The relation for one step.

    Attributes:
        root: The graph that the step is recorded as.
        known: By op name, what the graph does not say of its ops.
        fault: An exception for which the step cannot be recorded; `None` while there is none.
        has_zeros_for_none: Whether a gradient that is missing cannot be told from zeros that the tape was asked for in
            its place.
    """

    root: Any
    fault: Exception | None
    has_zeros_for_none: bool

    @property
    def known(self) -> Mapping[str, Known]: ...

    def check_request(self) -> None:
        """Raises SetupError where gradients of such a step cannot be recorded."""

    def knows(self, tensor: Any) -> bool:
        """Whether a tensor belongs to the step as it is recorded."""

    def graph_now(self) -> Any:
        """The graph that the step's ops are made in."""

    def symbol(self, tensor: Any) -> Any:
        """What stands for a tensor of the step in its graph."""

    def actual(self, symbol: Any) -> Any:
        """The tensor of the step that `symbol` stands for; `None` if there is none."""

    def recording(self) -> contextlib.AbstractContextManager[None]:
        """Open while the step runs."""

    def own_work(self) -> contextlib.AbstractContextManager[None]:
        """While the context is open, what runs is the recorder's and none of the step's."""

    def read(self, variable: Any) -> Any:
        """In own work: the value of a variable, read by the step."""

    def value_of(self, target: Any) -> Any:
        """The value of what is differentiated, without a change of how the step rounds."""

    def is_constant(self, symbol: Any) -> bool:
        """Whether a tensor is known before the step runs."""

    def origin(self, symbol: Any) -> Known:
        """What to call a tensor that no op of the step made, where its value came from a variable."""

    def more(self) -> dict[str, Any]:
        """Tensors that the step is to hand out besides its statistics, each under a name of its own."""

    def finish(self, flattener: Flattener, calls: Iterable[Call]) -> None:
        """The step is over: adds to the flat ops of its graph what shows only now."""


def is_of_graph(tensor: Any) -> bool:
    """Whether something is a tensor of a graph that TensorFlow traces a step into."""
    return isinstance(tensor, tf.Tensor) and hasattr(tensor, "graph")


class TracedSymbols:
    """The relation for a step that TensorFlow traces into the graph of now: see `Symbols`."""

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
        return contextlib.nullcontext()

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
        """A traced step has shown all of it."""
