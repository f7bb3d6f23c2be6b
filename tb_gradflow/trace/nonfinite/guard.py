"""Notices the first step whose gradients are not finite, and steps whose loss or gradient is far larger than usual, and
keeps what it takes to run such a step again.

By the next recorded step all weights are NaN, and the op where it began is one of thousands. So functions made from a
trace also check the gradients, and have a branch that runs when one of them is not finite, or the step is not usual:
see `watched`. In that moment the variables are as they were before the step: what follows from the gradients waits for
the branch, and the values of variables that the step changes whatever its gradients are, such as seeds, are kept in
every step, as references. So is what the step was given, and what it has drawn and read.

The branch is an `If` that TensorFlow does not lower, one op that does nothing until it is needed. It calls Python,
which reads the variables: each of them would be a microsecond in every step as an input.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import record
from tensorflow.python.eager.polymorphic_function import atomic_function
from tensorflow.python.framework import func_graph
from tensorflow.python.ops import handle_data_util

from tb_gradflow.trace.engine.additions import SCOPE, Additions, unobserved
from tb_gradflow.trace.engine.calls import CallSite, Path, argument_of_root, places
from tb_gradflow.trace.engine.cells import Cell
from tb_gradflow.trace.engine.copies import variables_given
from tb_gradflow.trace.engine.definitions import Definition, calls_in, new_node, node_of
from tb_gradflow.trace.engine.effects import Effects, Output
from tb_gradflow.trace.engine.siblings import Added, Edit
from tb_gradflow.trace.graph.gradient_call import Call
from tb_gradflow.trace.nonfinite.usual import Excess
from tb_gradflow.trace.nonfinite.watched import Watched
from tb_gradflow.trace.numerics.finiteness import half_squares
from tb_gradflow.trace.numerics.fusion import recomputed
from tb_gradflow.trace.protection.functions import held_weakly, in_step

_NUMBERS = itertools.count()

MOST_KEPT = 1 << 20
"""Elements of all variables of a step of which an earlier state is kept: TensorFlow copies what is kept when it
changes."""

KEPT_EVERY = 128
"""Steps after which another state is kept."""

_KEPT = f"{SCOPE}/kept_"
"""How `Effects.keeping` names the nodes that keep results."""


@dataclass(frozen=True, slots=True)
class Caught:
    """A step, before it has changed anything.

    Attributes:
        unit: The function that takes them.
        arguments: What it was given, by number; for a variable, its value.
        effects: What its effects have resulted in.
        excess: What is far above what is usual; `None` if that is not why it was caught.
    """

    unit: Unit
    arguments: Mapping[int, Any]
    effects: Mapping[Output, Any]
    excess: Excess | None = None

    def ago(self, counter: Any) -> int:
        """How many steps have begun since then, this one included, by a variable that each step increments; one where
        there is none."""
        if counter is None:
            return 1
        before = [
            self.arguments[number] for number in self.unit.variables if self.unit.resource(number) is counter.handle
        ]
        return max(int(counter.numpy()) - int(before[0].numpy()), 1) if before else 1


class Guard:
    """What functions made from one function have in addition.

    Args:
        function: The user's `AtomicFunction`.
        calls: The gradients that it takes.

    Attributes:
        units: The functions that take gradients, wherever they are called.
        caught: The first step whose gradients are not finite; `None` while there is none.
        spike: The last step that was not usual, until somebody takes it; `None` while there is none.
        fault: An exception in here; `None` while there is none.
    """

    def __init__(self, function: Any, calls: Sequence[Call]) -> None:
        self.caught: Caught | None = None
        self.spike: Caught | None = None
        self.fault: Exception | None = None
        self._function = function
        self._handles: Sequence[Any] = ()
        checked = {target: call for target, call in enumerate(calls) if call.checked is not None and not call.inner}
        graphs = [call.flattener.graph for call in checked.values()]
        self.units = [Unit(self, place, checked) for place in _units(function, graphs)]

    @property
    def edits(self) -> list[Edit]:
        """Of each function that is made."""
        return [edit for unit in self.units for edit in unit.edits]

    def begins(self, args: Sequence[Any]) -> None:
        """A function is about to be called with these arguments."""
        if self.caught is None:
            self._handles = args
            for unit in self.units:
                unit.begins()

    def handle(self, number: int) -> Any:
        """The argument of that number."""
        return self._handles[number]

    def failed(self, fault: Exception) -> None:
        self.fault = self.fault or fault


class Unit:
    """A function that takes gradients, at one of the places where it is called. If XLA compiles it, this is the whole
    function that XLA compiles.

    Attributes:
        function: It.
        effects: Its effects.
        targets: The requests for gradients that it makes, by their numbers.
        watched: What is usual of them.
        earlier: A step some time ago, with the weights after it; `None` if none was kept.
        ago: How many calls have begun since then.
    """

    def __init__(self, guard: Guard, place: CallSite, calls: Mapping[int, Call]) -> None:
        self.function = place.function
        self.effects = Effects(place.function)
        self.in_xla = place.in_xla
        self.in_loop = place.in_loop
        self._guard = guard
        self._cells: dict[int, Cell] = {}
        self._dtypes = variables_given(place.function)
        given = enumerate(place.function.graph.inputs)
        self._numbers = {number: argument_of_root(place, number) for number, each in given if each.dtype == tf.resource}
        inside = _inside(place)
        graph = next(graph for graph in inside if any(call.flattener.graph is graph for call in calls.values()))
        own = {target: call for target, call in calls.items() if call.flattener.graph is graph}
        check = _check_of(list(own.values()), self)
        self.targets = list(own)
        self.watched = Watched(len(own), in_loop=place.in_loop)
        given_out = [call.checked.gradients for call in own.values() if call.checked is not None]
        self._checked = [gradient for gradients in given_out for gradient in gradients]
        self.edits: list[Edit] = [
            _At(place.path, place.name, [check]),
            self.effects.keeping(place.path),
        ]
        self._noting = in_step(self._note, True, guard.failed)
        self._branches = _branches(held_weakly(self._noting, True))
        self._taken: Caught | None = None
        self.earlier: Caught | None = None
        self.ago = 0
        # In a loop it is not known how many steps ago that was.
        self._keeps = not place.in_loop and _elements_of(self._dtypes, place.function) <= MOST_KEPT

    def begins(self) -> None:
        """Another step begins."""
        self.ago += 1
        if self.watched.begins() and self._keeps and (self.earlier is None or self.ago > KEPT_EVERY):
            self.earlier, self.ago = self.taken(), 1
        self._taken = None

    @property
    def variables(self) -> list[int]:
        """Which of its arguments are variables."""
        return list(self._dtypes)

    @property
    def resources(self) -> list[int]:
        """Which of its arguments are resources."""
        return list(self._numbers)

    def resource(self, number: int) -> Any:
        """The resource that this argument is in the current step."""
        of_root = self._numbers[number]
        if of_root is None:
            raise ValueError(f"argument {number} of {self.function.name} is computed in the step")
        return self._guard.handle(of_root)

    def value(self, number: int) -> Any:
        """The value that this argument, a variable, has now."""
        return tf.raw_ops.ReadVariableOp(resource=self.resource(number), dtype=self._dtypes[number])

    def put(self, definition: Definition, name: str, numbers: str) -> None:
        """Adds the branch where these numbers of the step are known: in the function itself, or next to its call."""
        call = definition.node(node_of(numbers)) if self.in_xla else None
        arguments = [each.name for each in definition.proto.signature.input_arg]
        given = arguments if call is None else [each for each in call.input if not each.startswith("^")]
        # Where a step fails before it has its gradients, it must have changed what it changes without the recorder.
        late = definition.descendants(self._gradients(definition)) if call is None else set()
        late -= definition.ancestors([numbers])
        writers = [(node, written) for node, _, written in definition.uses() if written]
        early = [each for each in writers if each[0].name not in late] if call is None else [(call, given)]
        before: list[str] = []
        for number, each in enumerate(self.function.cached_definition.signature.input_arg):
            scope, value = f"{name}/argument_{number}", given[number]
            if number in self._dtypes:
                changing = [node for node, written in early if value in written]
                if not changing:
                    continue
                read = new_node(f"{scope}/read", "ReadVariableOp", [value], dtype=self._dtypes[number])
                definition.proto.node_def.append(read)
                for node in changing:
                    definition.wait(node, [read.name])
                self._kept(number, self._dtypes[number]).put(definition, scope, f"{read.name}:value:0")
            elif each.type != tf.resource.as_datatype_enum:
                self._kept(number, tf.as_dtype(each.type)).put(definition, scope, value)
            else:
                continue
            before.append(scope)
        if call is None:
            before += [each for each in self._effects_in(definition) if each not in late]
        is_usual, kept = self.watched.put(definition, numbers)
        branch = _branch(name, is_usual, self._branches)
        definition.wait(branch, [*before, kept])
        definition.proto.node_def.append(branch)
        definition.run_always(name)
        for node, _ in writers:
            if node.name in late:
                definition.wait(node, [name])

    def _gradients(self, definition: Definition) -> list[str]:
        parts = [part for each in self._checked for part in tf.nest.flatten(each, expand_composites=True)]
        return [definition.reference(each) for each in parts if getattr(each, "graph", None) is self.function.graph]

    def _effects_in(self, definition: Definition) -> list[str]:
        """The nodes that keep what its effects result in. Before they have run, that is still from the last step."""
        own = [each.name for each in definition.proto.node_def if each.name.startswith(_KEPT) and each.input[1:]]
        calls = calls_in(self.function.cached_definition)
        return own + [node.name for node, listed in calls if any(func.name in self.effects.apart for func in listed)]

    def _kept(self, number: int, dtype: Any) -> Cell:
        if number not in self._cells:
            self._cells[number] = Cell(dtype)
        return self._cells[number]

    def _note(self) -> None:
        """Called by the branch."""
        if self._guard.caught is not None:
            return
        is_finite, excess = self.watched.seen()
        if not is_finite:
            self._guard.caught = self.taken()
        elif excess is not None:
            self.watched.rest()
            self._guard.spike = dataclasses.replace(self.taken(), excess=excess)

    def taken(self) -> Caught:
        """The step that it is in, or the last one: what that was given, and what its effects have resulted in.
        Variables have the values that they have now, but for those that a step changes whatever its gradients are."""
        if self._taken is None:  # the cells are empty afterwards
            with record.stop_recording():
                arguments = {
                    number: value for number, cell in self._cells.items() if (value := cell.take()) is not None
                }
                for number in self.variables:
                    if number not in arguments:
                        arguments[number] = self.value(number)
                self._taken = Caught(self, arguments, self.effects.taken())
        return self._taken


class _At(Added):
    """An edit: additional ops where a function is called, and in those that it calls."""

    def __init__(self, path: Path, name: str, additions: Sequence[Additions]) -> None:
        super().__init__(additions)
        self.apart = (name,)
        self._path = path

    def changes(self, place: CallSite) -> bool:
        return place.path[: len(self._path)] == self._path and super().changes(place)


def _units(function: Any, graphs: Sequence[Any]) -> Iterator[CallSite]:
    """The outermost functions with these graphs, or those which XLA compiles with them."""
    found: list[Path] = []
    for place in places(function):
        if any(place.path[: len(path)] == path for path in found) or place.graph is None:
            continue
        if any(each is graph for each in _inside(place) for graph in graphs):
            found.append(place.path)
            yield place


def _inside(place: CallSite) -> list[Any]:
    """The graph of a function, and all graphs that XLA compiles with it."""
    return [each.graph for each in places(place.function)] if place.in_xla else [place.graph]


def _check_of(calls: Sequence[Call], unit: Unit) -> Additions:
    """The ops that check the gradients that are taken in one graph."""
    additions = Additions(calls[0].flattener.graph, "guard")
    with additions.opened():
        numbers = [number for call in calls for number in _numbers(call)]
        additions.results.append((unit, tf.stack(numbers)))
    return additions


def _numbers(call: Call) -> list[Any]:
    """The loss, and half the square of the norm of the gradients that are looked at, without a loss scale."""
    assert call.checked is not None
    checked = call.checked
    losses = [tf.reduce_sum(tf.cast(recomputed(each), tf.float32)) for each in checked.unscaled or checked.targets]
    loss = losses[0] if len(losses) == 1 else tf.add_n(losses or [tf.zeros([])])
    squares = half_squares(checked.gradients)
    if checked.scale is None:
        return [loss, squares]
    # A scale that is too large produces infinities all the time, and the optimizer skips those steps.
    scale = tf.cast(checked.scale, tf.float32)
    skipped = tf.where(scale < 1.0, float("inf"), 0.0)
    scaled = [squares / tf.square(scale)] if checked.unscaled else [squares / tf.square(scale), loss / scale]
    squares, *rest = [tf.where(tf.math.is_finite(each), each, skipped) for each in scaled]
    return [*(rest or [loss]), squares]


def _branch(name: str, is_usual: str, branches: Sequence[Any]) -> Any:
    node = new_node(name, "If", [is_usual], Tcond=tf.bool)
    node.device = "/device:CPU:0"
    node.attr["Tin"].list.SetInParent()
    node.attr["Tout"].list.type.append(tf.bool.as_datatype_enum)
    node.attr["output_shapes"].list.shape.add()
    for attribute, made in zip(("then_branch", "else_branch"), branches, strict=True):
        node.attr[attribute].func.name = made.name
    return node


def _branches(noting: Any) -> list[Any]:
    """Functions without arguments: the first does nothing, and the second calls Python."""
    return [_function(lambda: tf.constant(False)), _function(lambda: tf.numpy_function(noting, [], tf.bool))]


def _elements_of(variables: Collection[int], function: Any) -> float:
    """The number of elements of a function's variables; infinite if it is not known."""
    handles = [handle_data_util.get_resource_handle_data(function.graph.inputs[number]) for number in variables]
    sizes = [tf.TensorShape(each.shape_and_type[0].shape).num_elements() for each in handles]
    return sum(math.inf if each is None else each for each in sizes)


def _function(result: Callable[[], Any]) -> Any:
    graph: Any = func_graph.FuncGraph(SCOPE)
    with unobserved(), graph.as_default():
        output = result()
        output.set_shape([])
    graph.outputs = [output]
    return atomic_function.from_func_graph(f"{SCOPE}_branch_{next(_NUMBERS)}", graph, {})
