"""Repeats the trace of a function without its Python code: the ops of its graph are created again, in another graph.

Of a function that was traced when nobody looked on, only the graph is known, not which of its tensors is the gradient
of which. So its forward ops are created again under a tape, and the tape is asked for the gradient of what may have
been the loss. If it then creates the very ops with which the graph goes on, that was the loss: nothing is concluded
from names.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import execute, record
from tensorflow.python.framework import func_graph
from tensorflow.python.ops import handle_data_util

from tb_gradflow.trace.engine.additions import unobserved
from tb_gradflow.trace.tf_internals.captured_tensors import around

_OF_TAPE = "gradient_tape/"
"""Part of the names of the ops that a tape creates."""

_SEED = "ones"
"""How the names of those begin from which it starts."""


class NotRepeatable(Exception):
    """What a step did once cannot be done again; the message says why."""


class NotCompiled(NotRepeatable):
    """The Python code of an eager step needs the numbers of the step."""


@dataclass(frozen=True, slots=True)
class Request:
    """The gradient that a function requests.

    Attributes:
        loss: The differentiated tensor.
        sources: The variables for which it is requested.
        answer: The ops that compute it, in order.
    """

    loss: Any
    sources: Sequence[Any]
    answer: Sequence[Any]

    @property
    def seed(self) -> Any:
        """The op that it starts from."""
        return self.answer[0]


def requests_gradient(graph: Any) -> bool:
    """Whether a tape has created ops in a graph."""
    return any(_OF_TAPE in op.name for op in graph.get_operations())


def request_in(graph: Any, choices: Sequence[Sequence[Any]]) -> Request:
    """The request of a graph with one: for one of several lists of variables, the first that fits.

    Raises:
        NotRepeatable: none fits, or it has several.
    """
    answer = _answer(graph)
    before = graph.get_operations()[: graph.get_operations().index(answer[0])]
    for sources in choices:
        copy = _Copy(graph)
        with copy.opened(), tf.GradientTape(persistent=True) as tape:
            copy.extend(before, tape)
        for loss in _losses(before, answer[0].outputs[0]):
            # Gradients of sums share constants with those that were taken before in the same graph.
            copy.graph._reduced_shape_cache.clear()
            with copy.opened():
                known = len(copy.graph.get_operations())
                tape.gradient(copy.of(loss), list(sources))
                if copy.matches(copy.graph.get_operations()[known:], answer):
                    return Request(loss, sources, answer)
    raise NotRepeatable("no tensor of its graph is the loss of which its ops compute the gradient")


def repeated(graph: Any, request: Request) -> Any:
    """A graph with the same ops under the same names, made as the program has made the first.

    Raises:
        NotRepeatable: they are not the same.
    """
    copy, listed = _Copy(graph), graph.get_operations()
    first = listed.index(request.seed)
    with copy.opened():
        with tf.GradientTape() as tape:
            copy.extend(listed[:first], tape)
        known = len(copy.graph.get_operations())
        tape.gradient(copy.of(request.loss), list(request.sources))
        made = copy.graph.get_operations()[known:]
        if not copy.matches(made, request.answer) or any(
            new.name != old.name for new, old in zip(made, request.answer, strict=True)
        ):
            raise NotRepeatable("its gradient is not computed by the same ops a second time")
        with record.stop_recording():
            copy.extend(listed[first + len(request.answer) :])
    copy.graph.inputs = [copy.of(each) for each in graph.inputs]
    copy.graph.outputs = [copy.of(each) for each in graph.outputs]
    return copy.graph


def _answer(graph: Any) -> Sequence[Any]:
    """The ops that compute a gradient."""
    operations = graph.get_operations()
    numbers = [number for number, op in enumerate(operations) if _OF_TAPE in op.name]
    first, end = numbers[0], numbers[-1] + 1
    while first and operations[first - 1].name.rpartition("/")[2].startswith(_SEED):
        first -= 1
    if first == numbers[0]:
        raise NotRepeatable("its gradient does not start from a scalar loss")
    while end < len(operations) and operations[end].type == "AddN":  # a tape adds gradients outside of that scope
        end += 1
    found: Sequence[Any] = operations[first:end]
    return found


def _losses(before: Sequence[Any], seed: Any) -> Iterator[Any]:
    """What may have been differentiated, the last one first."""
    for op in reversed(before):
        for tensor in op.outputs if op.inputs else ():
            if tensor.dtype == seed.dtype and tensor.shape == seed.shape:
                yield tensor


class _Copy:
    """A graph that gets the ops of another.

    Attributes:
        graph: It.
    """

    def __init__(self, of: Any) -> None:
        with of.outer_graph.as_default():
            self.graph: Any = func_graph.FuncGraph(of.name)
        self._of = of
        self._captured = {id(inner): outer for outer, inner in of.captures}
        self._variables = {id(each.handle): each for each in of.variables}
        # Tensors of the other graph live as long as that: an id names one of them.
        self._tensors: dict[int, Any] = {}
        self._scopes = {scope for op in of.get_operations() if _OF_TAPE in op.name for scope in _scopes(op.name)}

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        # The callbacks for new ops are the user's Python code, too.
        with unobserved(), self.graph.as_default(), tf.control_dependencies(None):
            yield

    def of(self, tensor: Any) -> Any:
        """What represents a tensor of the other graph."""
        return self._tensors[id(tensor)]

    def extend(self, operations: Sequence[Any], tape: Any = None) -> None:
        """Creates ops again, under a tape or not."""
        for op in operations:
            # A tape names the ops that it creates for an op by the scope in which that was created: its own, or the
            # one around.
            own, around = f"{op.name}/", op.name[: op.name.rfind("/") + 1]
            with tf.name_scope(own if f"{_OF_TAPE}{own}" in self._scopes else around):
                self._create(op, tape)

    def matches(self, made: Sequence[Any], known: Sequence[Any]) -> bool:
        """Whether ops of this graph are the same as some of the other; if so, they represent them."""
        tensors = dict(self._tensors)
        if len(made) != len(known):
            return False
        for new, old in zip(made, known, strict=True):
            same = new.type == old.type and _attributes(new) == _attributes(old) and len(new.inputs) == len(old.inputs)
            if not same or any(
                tensors.get(id(its)) is not own for own, its in zip(new.inputs, old.inputs, strict=True)
            ):
                return False
            tensors.update((id(its), own) for own, its in zip(new.outputs, old.outputs, strict=True))
        self._tensors = tensors
        return True

    def _create(self, op: Any, tape: Any) -> None:
        inputs = []
        for tensor in op.inputs:
            if id(tensor) not in self._tensors:
                raise NotRepeatable(f"its op {op.name} takes a tensor that is created later")
            inputs.append(self._tensors[id(tensor)])
        self.graph.unique_name(op.name)  # so that a tape chooses the names that it has chosen before
        attributes = {name: value for name, value in op.node_def.attr.items() if name != "_class"}
        for value in attributes.values():
            for called in (value.func, *value.list.func):
                if called.name:
                    self.graph._add_function_recursive(self._of._get_function(called.name))
        # The slash makes the name absolute.
        made = self.graph._create_op_internal(
            op.type, inputs, dtypes=None, name=f"{op.name}/", attrs=attributes, op_def=op.op_def, compute_device=False
        )
        self._tensors.update((id(old), new) for old, new in zip(op.outputs, made.outputs, strict=True))
        self._record(op, made, tape)

    def _record(self, op: Any, made: Any, tape: Any) -> None:
        """Records an op for a tape as TensorFlow does it while it traces a program."""
        results = list(made.outputs)
        if op.type == "Placeholder":
            outer = self._captured.get(id(op.outputs[0]))
            if outer is None:
                if results[0].dtype == tf.resource:
                    handle_data_util.copy_handle_data(op.outputs[0], results[0])
                return
            handle_data_util.copy_handle_data(op.outputs[0], results[0])
            self.graph._function_captures.add_or_replace(id(outer), outer, results[0], is_by_ref=False)
            origin = around(outer)
            variable = self._variables.get(id(origin))
            if variable is not None and variable.trainable and tape is not None:
                tape.watch(variable)
            record.record_operation("captured_value", results, [origin], lambda gradient: [gradient])
        elif op.type == "StopGradient":
            return  # of an op with this name TensorFlow records nothing
        elif "_gradient_op_type" in op.node_def.attr:
            if tape is not None:
                raise NotRepeatable("it has a custom gradient, whose Python code would run again")
        else:
            attributes = [each for name in op.op_def.attr for each in (name.name, op.get_attr(name.name))]
            execute.record_gradient(op.type, list(made.inputs), tuple(attributes), results)


def _scopes(name: str) -> Iterator[str]:
    """Those around an op."""
    for end, letter in enumerate(name):
        if letter == "/":
            yield name[: end + 1]


def _attributes(op: Any) -> dict[str, Any]:
    return {name: value for name, value in op.node_def.attr.items() if name != "_class"}
