"""How a step's tensors relate to the graph as which it is recorded: everything in which kinds of steps differ for a
collector. In a step that TensorFlow traces, they are the graph's tensors. An eager step is recorded as another graph,
its shadow: see `eager.shadow_symbols`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.func_graph import FuncGraph

from tb_gradflow.errors import SetupError
from tb_gradflow.record.schema import SNAPSHOT
from tb_gradflow.trace.engine.additions import SCOPE, Additions
from tb_gradflow.trace.graph.flat_ops import Known
from tb_gradflow.trace.graph.flatten import Flattener
from tb_gradflow.trace.graph.gradient_call import Call
from tb_gradflow.trace.graph.variables import local
from tb_gradflow.trace.numerics.fusion import is_constant, recomputed
from tb_gradflow.trace.numerics.statistics_table import Block, LaterBlock
from tb_gradflow.trace.tf_internals.tapes import recorded_by, zeros_as_asked


def is_of_graph(tensor: Any) -> bool:
    """Whether something is a tensor of a graph that TensorFlow traces a step into."""
    return isinstance(tensor, tf.Tensor) and hasattr(tensor, "graph")


class Symbols:
    """The relation for a step that TensorFlow traces because the program calls it: nothing is added to its graphs.

    Args:
        part: A name for what is made from the step, if others are made from the same graphs.
        known: See `Flattener`.

    Attributes:
        root: The graph as which the step is recorded.
        known: By op name, facts about the ops that the graph does not contain.
        fault: An exception for which the step cannot be recorded; `None` while there is none.
    """

    only_observes = True
    """Whether the step's values are not there yet while it is observed."""

    def __init__(self, part: str = "", known: Mapping[str, Known] | None = None) -> None:
        self.root: Any = None
        self.known: Mapping[str, Known] = known or {}
        self.fault: Exception | None = None
        self._part = part
        self._additions: dict[int, Additions] = {}

    @property
    def additions(self) -> list[Additions]:
        """What functions made from the step have in addition, for each of its graphs."""
        return list(self._additions.values())

    def check_request(self) -> None:
        """A gradient is about to be requested. Raises SetupError if those of such a step cannot be recorded."""
        # The graph in which the first one is requested is that of the step; there may be another around it.
        now = self.graph_now()
        if self.root is None or _is_traced_again(self.root, now):
            self.root = now

    def knows(self, tensor: Any) -> bool:
        """Whether a tensor belongs to the step as it is recorded."""
        return is_of_graph(tensor)

    def graph_now(self) -> Any:
        """The graph in which the step's ops are created."""
        graph = tf.compat.v1.get_default_graph()
        return next((each.of for each in self._additions.values() if each.graph is graph), graph)

    def symbol(self, tensor: Any) -> Any:
        """The symbol of a step's tensor in its graph."""
        return tensor

    def actual(self, symbol: Any) -> Any:
        """The tensor of the step that `symbol` represents; `None` if there is none."""
        return symbol

    def recording(self) -> contextlib.AbstractContextManager[None]:
        """Open while the step runs."""
        return contextlib.nullcontext()

    def of_graph(self, graph: Any) -> Additions:
        """What is added for a graph."""
        if id(graph) not in self._additions:
            self._additions[id(graph)] = Additions(graph, self._part)
        return self._additions[id(graph)]

    @contextlib.contextmanager
    def own_work(self) -> Iterator[None]:
        """While the context is open, ops belong to the recorder, not to the step."""
        with self.of_graph(self.graph_now()).opened():
            yield

    def beside(self, tensors: Iterable[Any]) -> contextlib.AbstractContextManager[None]:
        """While the context is open, the recorder's own work is done where these tensors can be read. A gradient may be
        requested in a branch of a tensor from before it, which the branch itself does not read."""
        graph = self.graph_now()
        here = [graph, *(outer for outer, _ in graph.captures)] if isinstance(graph, FuncGraph) else [graph]
        outside = [each.graph for each in tensors if is_of_graph(each) and not _is_one_of(here, each.graph, each)]
        return self.of_graph(outside[0]).opened() if outside else contextlib.nullcontext()

    def passing(self) -> contextlib.AbstractContextManager[None]:
        """While the context is open, the step computes what follows from its loss."""
        return contextlib.nullcontext()

    def read(self, variable: Any) -> Any:
        """In the recorder's own work: the value of a variable, read by the step."""
        # It must do nothing else than without the recorder: it has to read it itself, after it has last changed it.
        graph, handle = self.graph_now(), local(variable).handle
        inside = next((inner for outer, inner in graph.captures if outer is handle), handle)
        uses = [op for op in graph.get_operations() if any(each is inside for each in op.inputs)]
        if uses and uses[-1].type == "ReadVariableOp":
            return uses[-1].outputs[0]
        raise SetupError(
            f"a gradient of the variable {variable.name} is requested, and the step does not read its value before: "
            "differentiate what was assigned to it, or use tb_gradflow.explain"
        )

    def value_of(self, target: Any) -> Any:
        """The differentiated value, without changing how the step rounds."""
        return recomputed(target)

    def block(self) -> Block:
        """Where the statistics of a request are kept."""
        return LaterBlock(self.of_graph(self.graph_now()).graph)

    def asked_for(self, tape: Any, tensors: Sequence[Any]) -> list[bool]:
        """For each tensor on the path, whether its gradient is requested too; it has none otherwise."""
        # The gradient of one that the tape has not recorded would take ops that the user's step does not have.
        return recorded_by(tape, tensors)

    def fills_zeros(self, *, alone: bool) -> bool:
        """Whether a tape is asked for missing gradients where its caller has requested zeros instead, and these are
        filled in afterwards; `alone` means that it is asked for nothing else than what its caller requests."""
        return not alone  # zeros for other tensors would be ops that the user's step does not have

    def with_zeros(self, ask: Any, asked: Any, target: Any, sources: Any) -> Any:
        """A tape's result with the zeros that the caller has requested instead of missing gradients."""
        return zeros_as_asked(ask, asked, target, sources)

    def is_constant(self, symbol: Any) -> bool:
        """Whether a tensor is known before the step runs."""
        return is_constant(symbol.op)

    def origin(self, symbol: Any) -> Known:
        """The name of a tensor that no op of the step computed, if its value came from a variable."""
        return Known(SNAPSHOT, "not_differentiable")

    def more(self) -> dict[str, Any]:
        """Tensors that the step must return in addition to its statistics, each under a unique name."""
        return {}

    def finish(self, flattener: Flattener, calls: Iterable[Call]) -> None:
        """The step is over: adds facts that are known only now to the flat ops of its graph."""

    def forget(self) -> None:
        """All is measured: lets the step's tensors go."""


class SymbolsOfOne(Symbols):
    """The same for a step that is traced for `explain`, and never run as it is."""

    def begins(self) -> None:
        """TensorFlow begins to trace it: the graph that is open is its own, wherever gradients are requested."""
        self.root = tf.compat.v1.get_default_graph()

    def check_request(self) -> None:
        """Every request can be recorded."""

    def read(self, variable: Any) -> Any:
        with self.graph_now().as_default(), tf.name_scope(f"{SCOPE}/"):
            return local(variable).read_value()


def _is_one_of(those: Iterable[Any], *these: Any) -> bool:
    """Tensors of a graph have no truth value to compare by."""
    return any(each is one for each in those for one in these)


def _is_traced_again(before: Any, now: Any) -> bool:
    """Whether a graph is the second trace of a function that has created variables in its first."""
    return now is not before and now.name == before.name and now.outer_graph is before.outer_graph
