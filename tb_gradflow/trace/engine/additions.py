"""Ops that functions made from a trace have in addition to those of its graph.

They are created in a graph of their own, inside the traced one: whatever they need from there becomes an argument of
that graph, and nothing is added to the user's.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import func_graph

from tb_gradflow.trace.engine.cells import Cell

SCOPE = "tb_gradflow"
"""The name scope of all these ops."""


class Additions:
    """The additional ops for one traced graph.

    Args:
        of: The traced graph.
        part: A name for them, where a function has others in addition for the same graph.

    Attributes:
        of: See above.
        graph: The graph that they are in.
        scope: The name scope of its ops.
        results: What leaves the function: the tensors, each with what takes it.
    """

    def __init__(self, of: Any, part: str = "") -> None:
        self.of = of
        self.scope = f"{SCOPE}/{part}/" if part else f"{SCOPE}/"
        with of.as_default():
            self.graph: Any = func_graph.FuncGraph(SCOPE)
        self.results: list[tuple[Any, Any]] = []

    def anew(self) -> Additions:
        """The same ops, for a function from which something else leaves."""
        made = copy.copy(self)
        made.results = []
        return made

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """While the context is open, ops that are created belong to these."""
        # The slash makes the scope absolute, and the same one every time.
        with unobserved(), self.graph.as_default(), tf.name_scope(self.scope), tf.control_dependencies(None):
            yield

    def leave(self, tensor: Any) -> Cell:
        """The function leaves a tensor in a new cell."""
        cell = Cell(tensor.dtype)
        self.results.append((cell, tensor))
        return cell


@contextlib.contextmanager
def unobserved() -> Iterator[None]:
    """While the context is open, callbacks of the user's, such as that of `tf.debugging.enable_check_numerics`, are not
    called for new ops."""
    current = context.context()
    before = current.invoking_op_callbacks
    current.invoking_op_callbacks = True
    try:
        yield
    finally:
        current.invoking_op_callbacks = before
