"""How functions take tensors from around them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from typing import Any

from tensorflow.core.function.capture.capture_container import FunctionCaptures

from tb_gradflow.trace.tf_internals.patching import replaced


def around(tensor: Any) -> Any:
    """The tensor as tapes know it: of one that a graph has captured, what was captured, wherever that is."""
    while hasattr(tensor, "graph") and hasattr(tensor.graph, "captures"):
        captured = next((outer for outer, inner in tensor.graph.captures if inner is tensor), None)
        if captured is None:
            break
        tensor = captured
    return tensor


@contextlib.contextmanager
def passed_on(tensors: Collection[Any]) -> Iterator[None]:
    """While the context is open, a function that is traced inside another takes these eager tensors, for which a
    gradient is requested, from that one.

    Otherwise it copies a small tensor as a new constant, which cannot be matched with the tensor.
    """
    known = {id(tensor) for tensor in tensors}
    with contextlib.ExitStack() as undo:
        if known:
            replaced(undo, FunctionCaptures, "capture_by_value", lambda original: _passing_on(original, known))
        yield


def _passing_on(original: Callable[..., Any], known: Collection[int]) -> Callable[..., Any]:
    def capture_by_value(self: Any, graph: Any, tensor: Any, name: str | None = None) -> Any:
        outer = getattr(graph, "outer_graph", None)
        if outer is None or id(tensor) not in known or not hasattr(outer, "capture"):
            return original(self, graph, tensor, name)
        with outer.as_default():  # a constant is made in the graph that is open
            passed = outer.capture(tensor)
        return original(self, graph, passed, name)

    return capture_by_value
