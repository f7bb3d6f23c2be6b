"""The graph of one training: its variables, and the ops between them and its losses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tb_gradflow.record.schema import Passes
from tb_gradflow.trace.engine.reached import behind
from tb_gradflow.trace.graph.differentiable import custom_gradient_name, is_differentiable_dtype
from tb_gradflow.trace.graph.flat_ops import Ref
from tb_gradflow.trace.graph_v1.flat_ops_v1 import GraphFlattener, has_gradient, is_at_the_top
from tb_gradflow.trace.graph_v1.variables_v1 import GraphVariables, parts_of, source_of
from tb_gradflow.trace.sessions.executions import maker_of
from tb_gradflow.trace.sessions.requests import Request


class Structure:
    """The graph of one training. Nothing is added to it, and no function of the program is called.

    Attributes:
        requests: The requests that belong to the training.
        inner: Those of them whose gradient is a part of another one's loss.
        variables: What gradients are requested for.
        flattener: The graph as flat ops.
    """

    def __init__(self, graph: Any, requests: Sequence[Request], inner: Sequence[Request], all_of: Sequence[Request]):
        self.requests = requests
        self.inner = inner
        self.variables = GraphVariables(graph, list(_asked(graph, requests, inner, all_of)))
        self._indices = {tensor.name: index for index, tensor in self.variables.sources()}
        self.flattener = _SessionFlattener(graph, self.variables.of_handle, all_of, inner)
        self.flattener.extend()
        for index, tensor in self.variables.tensors():
            self.flattener.mark_tensor(tensor, index)

    def index_of(self, source: Any) -> int | None:
        """The index of what a gradient is requested for; `None` if it is not listed."""
        return self._indices.get(source.name)

    @property
    def lists_all(self) -> bool:
        """Whether the gradient is requested for all trainable variables of the graph."""
        trainable = self.flattener.graph.get_collection("trainable_variables")
        asked = {source.name for request in self.requests for source in request.sources}
        return all(source_of(each).name in asked for each in trainable)

    def gradients_on_the_way(self, request: Request) -> Iterator[tuple[Ref, Any]]:
        """The tensors between the variables and the loss of a request, each with its gradient."""
        ends = {each.name for each in (*request.targets, *request.sources)}
        for name, gradients in request.ops.items():
            op = self.flattener.graph.get_operation_by_name(name)
            for tensor, gradient in zip(op.outputs, gradients.arriving, strict=False):
                ref = self.flattener.ref(tensor)
                if gradient is None or ref is None or tensor.name in ends or not has_gradient(tensor):
                    continue
                if is_at_the_top(self.flattener.ops[ref.op]):
                    yield ref, gradient


def _asked(
    graph: Any, requests: Sequence[Request], inner: Sequence[Request], all_of: Sequence[Request]
) -> Iterator[Any]:
    """The variables and tensors for which a gradient is requested. The tensors for which a part of a loss requests one
    do not concern the user; nor do the variables of other trainings: by default, each requests all variables of the
    graph.
    """
    known = _variables_of(graph)
    elsewhere = _of_others(requests, all_of)
    for request in requests:
        for source in request.sources:
            if source.name in known:
                if source.name not in elsewhere:
                    yield known[source.name]
            elif request not in inner and maker_of(source) is None:
                yield source


def _of_others(requests: Sequence[Request], all_of: Sequence[Request]) -> set[str]:
    """The names of what only the losses of other requests depend on."""
    without = {
        source.name: source.op.name
        for request in requests
        for source, answer in zip(request.sources, request.answers, strict=True)
        if answer is None
    }
    if not without:
        return set()
    needed = _needed_for_targets(requests)
    unused = {name for name, op in without.items() if op not in needed}
    found: set[str] = set()
    for request in all_of:
        asked = [source for source in request.sources if source.name in unused]
        if asked and request not in requests:
            needed_there = _needed_for_targets([request])
            found.update(source.name for source in asked if source.op.name in needed_there)
    return found


def _needed_for_targets(requests: Sequence[Request]) -> set[str]:
    """The names of the ops from which the targets of requests are computed."""
    return {op.name for op in behind(target.op for request in requests for target in request.targets)}


def _variables_of(graph: Any) -> Mapping[str, Any]:
    """The variables of a graph, by the names of their handles or references."""
    listed = (each for key in graph.get_all_collection_keys() for each in graph.get_collection(key))
    variables = parts_of(each for each in listed if isinstance(each, tf.Variable))
    return {source_of(each).name: each for each in variables}


class _SessionFlattener(GraphFlattener):
    """Knows from the program's requests which ops compute a gradient, and what custom gradients returned."""

    def __init__(self, graph: Any, variable_of: Any, requests: Sequence[Request], inner: Sequence[Request]) -> None:
        super().__init__(graph, variable_of)
        self._requests = requests
        self._inner_requests = inner

    def is_gradient(self, op: Any) -> bool:
        """See `GraphFlattener`."""
        return op.graph is self.graph and any(request.has_made(op) for request in self._requests)

    def is_inner_gradient(self, op: Any) -> bool:
        """See `GraphFlattener`."""
        return any(request.has_made(op) for request in self._inner_requests)

    def _plain(self, op: Any, frame: Any) -> None:
        known = len(self.ops)
        super()._plain(op, frame)
        if custom_gradient_name(op) is None:
            return
        # Its gradient function is the program's, so it is not called to see what it propagates.
        passes = self._passed_by(op)
        for flat in self.ops[known:]:
            if flat.op is op:
                for item in flat.inputs:
                    item.passes = item.passes or passes[item.slot]

    def _passed_by(self, op: Any) -> list[Passes]:
        for request in self._requests if op.graph is self.graph else ():
            if (gradients := request.ops.get(op.name)) is not None:
                return [
                    "dtype" if not is_differentiable_dtype(tensor) else "none" if each is None else "yes"
                    for tensor, each in zip(op.inputs, gradients.passed, strict=False)
                ]
        return ["unknown" if is_differentiable_dtype(tensor) else "dtype" for tensor in op.inputs]
