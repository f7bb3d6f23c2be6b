"""A part of a graph, extracted so that it can run separately on other values.

It can be computed in float64 whatever its own precision: differences of neighbouring values then keep ten digits, while
float32 keeps three.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, graph_pb2, node_def_pb2, types_pb2
from tensorflow.python.framework import versions

from tb_gradflow.trace.protection.foreign import faults

Values = Mapping[str, Any]
"""Arrays by the name of the tensor."""

# The old control flow uses several ops that only work together, in their own frames.
_OLD_CONTROL_FLOW = frozenset(
    {"Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration", "LoopCond"}
    | {"Switch", "RefSwitch", "Merge", "RefMerge"}
)
_HALVES = (types_pb2.DT_FLOAT, types_pb2.DT_HALF, types_pb2.DT_BFLOAT16)


class CannotCutError(Exception):
    """The part cannot run separately; the message is the reason, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a graph.

    Attributes:
        arguments: The tensors that it is a function of; the first of each group stands for all.
        results: The tensors that it computes; one of them may be an argument.
        ops: The ops in between, in an order in which they can run.
        given: The other inputs, which do not depend on the arguments.
    """

    arguments: tuple[tuple[Any, ...], ...]
    results: tuple[Any, ...]
    ops: tuple[Any, ...]
    given: tuple[Any, ...]

    @property
    def fed(self) -> tuple[Any, ...]:
        """The tensors whose values are needed to run it."""
        return (*(group[0] for group in self.arguments), *self.given)


def cut_out(arguments: Sequence[Sequence[Any]], results: Sequence[Any]) -> Part:
    """The ops that lead from `arguments` to `results`, all tensors of one graph.

    Raises CannotCutError if running them again would draw other numbers, change state, or is not possible.
    """
    stops = {tensor.name for group in arguments for tensor in group}
    behind = _behind(results, stops)
    inside: dict[str, Any] = {}
    for op in behind:
        if any(tensor.name in stops or tensor.op.name in inside for tensor in op.inputs):
            _check(op)
            inside[op.name] = op
    given: dict[str, Any] = {}
    for tensor in [*(tensor for op in inside.values() for tensor in op.inputs), *results]:
        if tensor.name not in stops and tensor.op.name not in inside:
            given[tensor.name] = tensor
    ops = [*_makers(given), *inside.values()]
    return Part(tuple(map(tuple, arguments)), tuple(results), tuple(ops), tuple(given.values()))


def _behind(results: Iterable[Any], stops: set[str]) -> list[Any]:
    """The ops on which the results depend, back to the stops, producers first."""
    order: list[Any] = []
    seen: set[str] = set()
    stack = [(tensor.op, False) for tensor in results if tensor.name not in stops]
    while stack:
        op, done = stack.pop()
        if done:
            order.append(op)
        elif op.name not in seen:
            seen.add(op.name)
            stack.append((op, True))
            stack.extend((tensor.op, False) for tensor in op.inputs if tensor.name not in stops)
    return order


def _check(op: Any) -> None:
    if op.type in _OLD_CONTROL_FLOW:
        raise CannotCutError("it contains a branch or a loop of TensorFlow 1")
    if op.type.startswith(("PyFunc", "EagerPyFunc")):
        raise CannotCutError("its forward computation runs Python")
    if op.op_def.is_stateful:
        raise CannotCutError(f"its forward computation is not repeatable (`{op.type}`)")


def _makers(given: dict[str, Any]) -> list[Any]:
    """Moves values that cannot be fed, or not as well, from `given` to the result: the producers of tensor lists, and
    integer constants, which fix shapes.
    """
    made: dict[str, Any] = {}
    waiting = list(given.values())
    for tensor in waiting:  # grows during the loop
        if tensor.dtype == tf.resource:
            raise CannotCutError(f"its forward computation reads state (`{tensor.op.type}`)")
        if tensor.dtype == tf.variant or (tensor.op.type == "Const" and tensor.dtype.is_integer):
            _check(tensor.op)
            del given[tensor.name]
            made[tensor.op.name] = tensor.op
            new = [each for each in tensor.op.inputs if each.name not in given]
            given.update((each.name, each) for each in new)
            waiting.extend(new)
    return list(made.values())[::-1]


class Running:
    """A part that can be run. Created by `opened`.

    Attributes:
        is_double: Whether it computes in float64.
    """

    def __init__(self, part: Part, names: Mapping[str, str], session: Any, derivative: Any, *, is_double: bool) -> None:
        self._part = part
        self._names = names
        self._session = session
        self._upstream, self._gradients = derivative
        self.is_double = is_double

    def results(self, values: Values) -> list[Any]:
        """The results for the values of `Part.fed`."""
        fetched = [self._names[tensor.name] for tensor in self._part.results]
        return list(self._session.run(fetched, self._feed(values)))

    def derivatives(self, values: Values, upstream: Sequence[Any]) -> list[Any]:
        """TensorFlow's own derivative of the gradient of the results, for each argument; None if it has none."""
        fetched = [gradient for gradient in self._gradients if gradient is not None]
        feed = self._feed(values)
        feed.update(
            (tensor, value) for tensor, value in zip(self._upstream, upstream, strict=True) if tensor is not None
        )
        found = iter(self._session.run(fetched, feed))
        return [None if gradient is None else next(found) for gradient in self._gradients]

    def _feed(self, values: Values) -> dict[Any, Any]:
        return {self._names[tensor.name]: values[tensor.name] for tensor in self._part.fed}


@contextlib.contextmanager
def opened(part: Part, *, double: bool) -> Iterator[Running]:
    """The part, ready to run, in float64 if requested. Not every op supports that precision: this or the first run may
    then raise whatever TensorFlow raises.
    """
    graph, names = _graph_of(part, double=double)
    # On the CPU, which has no reduced precision.
    with tf.compat.v1.Session(graph=graph, config=tf.compat.v1.ConfigProto(device_count={"GPU": 0})) as session:
        yield Running(part, names, session, _derivative(part, graph, names), is_double=double)


def _derivative(part: Part, graph: Any, names: Mapping[str, str]) -> tuple[list[Any], list[Any]]:
    results = [graph.get_tensor_by_name(names[tensor.name]) for tensor in part.results]
    arguments = [graph.get_tensor_by_name(names[group[0].name]) for group in part.arguments]
    with graph.as_default():
        upstream = [tf.compat.v1.placeholder(each.dtype) if each.dtype.is_floating else None for each in results]
        floating = [place for place, each in enumerate(upstream) if each is not None]
        try:
            gradients = tf.compat.v1.gradients(
                [results[place] for place in floating], arguments, grad_ys=[upstream[place] for place in floating]
            )
        # No gradient is registered, or it is refused on purpose: there is nothing to compare with.
        except faults():
            return upstream, [None] * len(arguments)
        return upstream, [None if each is None else tf.convert_to_tensor(each) for each in gradients]


def _graph_of(part: Part, *, double: bool) -> tuple[Any, dict[str, str]]:
    """A graph of only this part, and the names of the part's tensors in it."""
    definition = graph_pb2.GraphDef()
    definition.versions.producer = versions.GRAPH_DEF_VERSION
    names: dict[str, str] = {}
    for place, tensor in enumerate(part.fed):
        definition.node.append(_placeholder(f"gradflow_given_{place}", tensor, double=double))
        names[tensor.name] = f"gradflow_given_{place}:0"
    for group in part.arguments:
        names.update((tensor.name, names[group[0].name]) for tensor in group)
    for op in part.ops:
        names.update((tensor.name, tensor.name) for tensor in op.outputs)
        definition.node.append(_node(op, names, double=double))
    if part.ops and any(_calls(op) for op in part.ops):
        if double:
            raise CannotCutError("it calls functions")
        definition.library.CopyFrom(part.ops[0].graph.as_graph_def().library)
        for function in definition.library.function:
            _strip(function.node_def)
    graph = tf.Graph()
    with graph.as_default():
        tf.graph_util.import_graph_def(definition, name="")
    return graph, names


def _placeholder(name: str, tensor: Any, *, double: bool) -> Any:
    node = node_def_pb2.NodeDef(name=name, op="Placeholder")
    dtype = tensor.dtype.base_dtype.as_datatype_enum
    node.attr["dtype"].type = types_pb2.DT_DOUBLE if double and dtype in _HALVES else dtype
    node.attr["shape"].shape.CopyFrom(tensor.shape.as_proto())
    return node


def _node(op: Any, names: Mapping[str, str], *, double: bool) -> Any:
    node = node_def_pb2.NodeDef()
    node.CopyFrom(op.node_def)
    node.device = ""
    node.input[:] = [names[tensor.name] for tensor in op.inputs]
    _strip([node])
    if double:
        for value in node.attr.values():
            _widen(value)
    return node


def _strip(nodes: Iterable[Any]) -> None:
    """Without colocation, hints, and custom gradients."""
    for node in nodes:
        for name in [name for name in node.attr if name.startswith("_")]:
            del node.attr[name]


def _widen(value: attr_value_pb2.AttrValue) -> None:
    if value.WhichOneof("value") == "type" and value.type in _HALVES:
        value.type = types_pb2.DT_DOUBLE
    elif value.WhichOneof("value") == "list":
        value.list.type[:] = [types_pb2.DT_DOUBLE if each in _HALVES else each for each in value.list.type]


def _calls(op: Any) -> bool:
    return any(value.WhichOneof("value") == "func" for value in op.node_def.attr.values())


def as_fed(value: Any, *, is_double: bool) -> Any:
    """A value in the precision that a running part takes."""
    array = np.asarray(value)
    return array.astype(np.float64) if is_double and is_floating(array) else array


def is_floating(array: Any) -> bool:
    """Whether a NumPy array has floating numbers, of whatever precision."""
    return bool(array.dtype.kind == "f" or array.dtype.name == "bfloat16")
