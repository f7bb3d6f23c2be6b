"""A function that computes some of another's tensors, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.trace.engine.additions import SCOPE
from tb_gradflow.trace.engine.calls import CallSite, Path, name_of, places
from tb_gradflow.trace.engine.definitions import Definition, new_node


class Alone:
    """An edit, to be made before others: what these tensors do not need is left out, and the results are zeros.

    Args:
        function: The `AtomicFunction`.
        tensors: They belong to its graph, or to those of functions that it calls.

    Attributes:
        apart: See `Edit`.
    """

    def __init__(self, function: Any, tensors: Iterable[Any]) -> None:
        self._function = function
        self._tensors = list(tensors)
        graphs = {id(each.graph) for each in self._tensors}
        ways = [place for place in places(function) if id(place.graph) in graphs]
        self._paths: set[Path] = {place.path[:size] for place in ways for size in range(len(place.path) + 1)}
        self.apart = frozenset(name_of(each) for place in ways for each in (*place.above, place.function))

    def changes(self, place: CallSite) -> bool:
        return place.path in self._paths

    def make(self, definition: Definition, place: CallSite) -> Sequence[Any]:
        proto = definition.proto
        self._prune(definition, place)
        proto.control_ret.clear()
        del proto.signature.control_output[:]
        for name in self._calls(place):
            definition.run_always(name)
        if not place.path:
            for number, result in enumerate(proto.signature.output_arg):
                if tf.as_dtype(result.type) not in _WITHOUT_ZERO:
                    proto.node_def.append(zero := _zero(f"{SCOPE}/nothing_{number}", tf.as_dtype(result.type)))
                    proto.ret[result.name] = f"{zero.name}:output:0"
        return []

    def left(self) -> Iterator[tuple[Path, Definition]]:
        """What is left, of each function that may still be called, and where it is called."""
        whole: set[Path] = set()
        for place in places(self._function):
            if place.path in self._paths or place.path in whole:
                definition = Definition(place.definition, place.graph)
                if place.path in self._paths:
                    self._prune(definition, place)
                yield place.path, definition
                whole |= {(*place.path, each.name) for each in definition.proto.node_def}

    def _prune(self, definition: Definition, place: CallSite) -> None:
        kept = self._needed(definition, place)
        nodes = [each for each in definition.proto.node_def if each.name in kept]
        del definition.proto.node_def[:]
        definition.proto.node_def.extend(nodes)

    def _calls(self, place: CallSite) -> list[str]:
        """The nodes of a function that call others with such tensors."""
        return [each.name for each in place.definition.node_def if (*place.path, each.name) in self._paths]

    def _needed(self, definition: Definition, place: CallSite) -> set[str]:
        """The nodes of a function that are left."""
        wanted = [definition.reference(each) for each in self._tensors if each.graph is place.graph]
        signature = definition.proto.signature
        results = [
            definition.proto.ret[each.name]
            for each in signature.output_arg
            if place.path or tf.as_dtype(each.type) in _WITHOUT_ZERO
        ]
        return definition.ancestors([*wanted, *self._calls(place), *results])


_WITHOUT_ZERO = (tf.resource, tf.variant)


def _zero(name: str, dtype: Any) -> Any:
    node = new_node(name, "Const", [], dtype=dtype)
    value = np.zeros([], dtype.as_numpy_dtype) if dtype != tf.string else b""
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, dtype))
    return node
