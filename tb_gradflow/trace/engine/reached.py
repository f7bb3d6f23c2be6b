"""What can be reached in a graph, whatever its nodes are: ops, or the names that they have in definitions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeVar

_Node = TypeVar("_Node", bound=Hashable)


def reached(start: Iterable[_Node], further: Callable[[_Node], Iterable[_Node]]) -> Iterator[_Node]:
    """These nodes and those that they lead to, each once; depth first."""
    seen: set[_Node] = set()
    stack = list(start)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            yield node
            stack.extend(further(node))


def behind(ops: Iterable[Any]) -> Iterator[Any]:
    """These ops, and those that compute what they take; without those that they only wait for."""
    return reached(ops, lambda op: (tensor.op for tensor in op.inputs))
