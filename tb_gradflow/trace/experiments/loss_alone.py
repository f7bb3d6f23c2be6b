"""The losses of a step as functions of its variables, and of the inputs of its ops. Nothing else that the step does
happens again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import tensorflow as tf

from tb_gradflow.record.schema import Trace
from tb_gradflow.trace.engine.additions import Additions
from tb_gradflow.trace.engine.alone import Alone
from tb_gradflow.trace.engine.calls import places
from tb_gradflow.trace.engine.cells import Cell
from tb_gradflow.trace.engine.draws import Draws
from tb_gradflow.trace.engine.effects import Effects, Giving
from tb_gradflow.trace.engine.repeated import NotRepeatable
from tb_gradflow.trace.engine.run import cancelled_after
from tb_gradflow.trace.engine.siblings import Added, Edit, Sibling
from tb_gradflow.trace.experiments.inlets import Inlet, Moved
from tb_gradflow.trace.graph.gradient_call import Call
from tb_gradflow.trace.graph.variables import Variables

MOST_OF_LOSS = 10.0
"""Seconds that a loss may take."""


_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True, eq=False)  # equality of tensors is an op
class Loss:
    """A loss of a step.

    Attributes:
        tensors: What was differentiated: tensors of one graph, whose elements the loss is the sum of.
        scale: A tensor of that graph by which the loss was multiplied; `None` if it was not.
    """

    tensors: Sequence[Any]
    scale: Any = None

    def whole(self) -> Any:
        """Its value, in a graph that is open."""
        whole = tf.add_n([tf.reduce_sum(tf.cast(each, tf.float32)) for each in self.tensors])
        return whole if self.scale is None else whole / tf.cast(self.scale, tf.float32)


def loss_of(call: Call, symbol: Callable[[Any], Any] = lambda tensor: tensor) -> Loss | None:
    """That of a request for gradients; `None` if it is not known, or not all in the graph of the request. `symbol`
    returns the tensor of the graph for one of the step."""
    checked = call.checked if call.measured else None
    if checked is None or not checked.targets:
        return None
    tensors, scale = [symbol(each) for each in checked.targets], checked.scale
    listed = tensors if scale is None else [*tensors, scale]
    is_here = all(getattr(each, "graph", None) is call.flattener.graph for each in listed)
    return Loss(tensors, scale) if is_here else None


Pair = tuple[int, int]
"""A target and a variable, by their numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Gradient:
    """The gradient of a variable, as the program gets it.

    Attributes:
        value: A tensor of a graph.
        indices: If it has some rows of the gradient alone: which ones; `None` if it has all.
        row_count: How many rows the variable has then.
        scale: See `Loss`.
    """

    value: Any
    indices: Any
    row_count: int
    scale: Any

    @property
    def tensors(self) -> list[Any]:
        """Those that it is made of."""
        return [each for each in (self.value, self.indices, self.scale) if each is not None]

    def whole(self) -> Any:
        """Its value, in a graph that is open."""
        whole = tf.cast(self.value, tf.float32)
        if self.indices is not None:
            whole = tf.math.unsorted_segment_sum(whole, self.indices, self.row_count)
        return whole if self.scale is None else whole / tf.cast(self.scale, tf.float32)


def left_in(cells: dict[_Key, Cell], key: _Key, of: Loss | Gradient, name: str) -> Additions:
    """Adds the value of a loss or a gradient to its graph, and keeps it in a new cell."""
    additions = Additions(of.tensors[0].graph, name)
    with additions.opened():
        cells[key] = additions.leave(of.whole())
    return additions


def gradients_of(calls: Sequence[Call], trace: Trace, graphs: Collection[int]) -> dict[Pair, Gradient]:
    """Those of which all is computed in one of some graphs, by their ids."""
    found = {}
    for target, call in enumerate(calls):
        if call.checked is None or call.inner or call.weighted:
            continue
        for variable, value in call.given.items():
            shape, indices = trace.variables[variable].shape, call.indices.get(variable)
            gradient = Gradient(value, indices, shape[0] or 0 if shape else 0, call.checked.scale)
            own = {id(getattr(each, "graph", None)) for each in gradient.tensors}
            if value.dtype.is_floating and len(own) == 1 and own <= {*graphs}:
                found[target, variable] = gradient
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Suspected:
    """An op that may be why variables get no gradient, of a graph that runs once in the step.

    Attributes:
        op: Index in `Trace.ops`.
        target: A loss that depends on it.
        inlet: Its input, of the same graph; if it only has integers, the last floating one from which they follow.
        outputs: Its outputs.
    """

    op: int
    target: int
    inlet: Inlet
    outputs: Sequence[Any]


@dataclass(frozen=True, slots=True)
class LastStep:
    """A step that is over.

    Attributes:
        function: The `AtomicFunction` that takes its gradients.
        args: Its arguments, with the handles of the variables.
        values: The values of the variables by the number of the argument; `None` for one without a value.
        effects: The effects of the function.
        given: An edit that gives a copy what these have resulted in.
        after: The values of the variables after the step, as far as they are known, likewise.
    """

    function: Any
    args: Sequence[Any]
    values: Mapping[int, Any]
    effects: Effects
    given: Giving
    after: Mapping[int, Any] = field(default_factory=dict)

    def with_batch(self, change: Callable[[Any], Any]) -> LastStep:
        """The same with other tensors in place of those that it was given or drew; it keeps what it captures."""
        graph = self.function.graph
        own = len(graph.inputs) - len(list(graph.captures))
        args = [change(each) if number < own else each for number, each in enumerate(self.args)]
        return replace(self, args=args, given=self.given.changed(change))

    def numbers(self, variables: Variables) -> dict[int, int]:
        """Which argument a variable is, by the number of the variable."""
        numbers = {id(self.args[number]): number for number in self.values}
        handles = [id(getattr(each.variable, "handle", None)) for each in variables]
        return {place: numbers[handle] for place, handle in enumerate(handles) if handle in numbers}


class LossAlone:
    """See above.

    Args:
        step: The step.
        losses: Its losses, by target.
        copies: Copies of its variables, by the ids of their handles.
        suspects: Ops whose inputs are moved; with gradients, for all ops that use the same tensors.
        gradients: Those that are computed too, by target and variable.
        draws: The random numbers of another one, which this one draws as well.

    Attributes:
        given: The values of those inputs in the last run, by number; none if an op has not run.
        computed: The outputs of the ops, the same way.
        gradients: The gradients of the last run, unscaled; none that were not computed.
        draws: The ops that draw random numbers: others than in the step, and the same each time.
        is_held: Whether a part of it is held where it was in the step.

    Raises:
        NotRepeatable: the losses cannot be computed again.
    """

    def __init__(
        self,
        step: LastStep,
        losses: Mapping[int, Loss],
        copies: Mapping[int, Cell],
        suspects: Sequence[Suspected] = (),
        gradients: Mapping[Pair, Gradient] = {},
        draws: Draws | None = None,
    ) -> None:
        wanted = [each for loss in losses.values() for each in loss.tensors]
        wanted += [tensor for each in gradients.values() for tensor in each.tensors]
        inlets = [each.inlet for each in suspects]
        alone = Alone(step.function, [*wanted, *(each.outputs[0] for each in suspects)])
        if step.effects.unknown:
            raise NotRepeatable(f"it contains {', '.join(step.effects.unknown)} in a loop, or compiled by XLA")
        left = list(alone.left())
        if any("PyFunc" in node.op for _, definition in left for node in definition.proto.node_def):
            raise NotRepeatable("its loss needs Python, or an op that runs once")
        lacking = sorted({kind for path, definition in left for kind in step.given.lacking(path, definition)})
        if lacking:
            raise NotRepeatable(f"it contains {', '.join(lacking)} in a branch that it did not take")
        self._step = step
        self._own_copies = copies
        self._values = {copies[id(step.args[number])]: value for number, value in step.values.items()}
        self._writes = any(written for _, definition in left for _, _, written in definition.uses())
        self._changed = set(self._values)
        self._copies = {number: copies[id(step.args[number])] for number in step.values}
        self._args = self._args_of(step)
        self.draws = draws or Draws(step.function)
        by_path = {place.path: place for place in places(step.function)}
        self.is_held = any(kind for path, definition in left for kind in step.given.held(by_path[path], definition))
        self._losses: dict[int, Cell] = {}
        self._given: dict[int, Cell] = {}
        self._computed: dict[int, list[Cell]] = {}
        self.given: dict[int, Any] = {}
        self.computed: dict[int, list[Any]] = {}
        self._gradients: dict[Pair, Cell] = {}
        self.gradients: dict[Pair, Any] = {}
        added = [left_in(self._losses, target, loss, f"loss_{target}") for target, loss in losses.items()]
        added += [self._showing(number, each) for number, each in enumerate(suspects)]
        added += [
            left_in(self._gradients, pair, each, "gradient_{}_{}".format(*pair)) for pair, each in gradients.items()
        ]
        edits: list[Edit] = [alone, step.given, self.draws, Moved(inlets, everywhere=bool(gradients)), Added(added)]
        self._sibling = Sibling(step.function, edits, optimized=False)

    def __call__(self, seconds: float, moved: Mapping[int, Any] = {}) -> dict[int, float]:
        """The losses by target, with other values of some variables, by the number of the argument. Raises an error of
        TensorFlow's after so many seconds: a loop may have no end with these values."""
        self.draws.rewind()
        given = {self._copies[number]: value for number, value in moved.items()}
        values = self._values | given
        with tf.init_scope():
            for copy in self._changed | given.keys():
                if values[copy] is not None:
                    copy.write(values[copy])
            self._changed = set(self._values) if self._writes else set(given)
            with cancelled_after(seconds):
                self._sibling(self._args)
        self.given = {each: value for each, cell in self._given.items() if (value := cell.take()) is not None}
        self.computed = {each: [cell.take() for cell in cells] for each, cells in self._computed.items()}
        self.gradients = {each: value for each, cell in self._gradients.items() if (value := cell.take()) is not None}
        taken = {target: cell.take() for target, cell in self._losses.items()}
        return {target: float(value.numpy()) for target, value in taken.items() if value is not None}

    def put_back(self) -> None:
        """Gives moved variables the values again that they have in the step: other losses may share their copies."""
        for copy in self._changed:
            if self._values[copy] is not None:
                copy.write(self._values[copy])
        self._changed = set()

    def have_batch(self, change: Callable[[Any], Any]) -> None:
        """From now on, the step has other tensors of the same shapes in place of those that it was given or drew."""
        self._step.given.write(change)
        self._args = self._args_of(self._step.with_batch(change))

    def _args_of(self, step: LastStep) -> list[Any]:
        copies = self._own_copies
        return [copies[id(each)].opened() if id(each) in copies else each for each in step.args]

    def _showing(self, number: int, suspect: Suspected) -> Additions:
        additions = Additions(suspect.outputs[0].graph, f"shown_{number}")
        with additions.opened():
            self._given[number] = additions.leave(suspect.inlet.tensor)
            self._computed[number] = [additions.leave(each) for each in suspect.outputs]
        return additions
