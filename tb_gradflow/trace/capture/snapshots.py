"""Tensors that were computed from a variable before the step, and appear in it like constants.

Only their values show where they come from. The search covers only variables that the step does not read at all
although a gradient was requested, and only constants on which the loss depends.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tb_gradflow.record.schema import COMPILED_EARLY
from tb_gradflow.trace.fidelity.object_graph import attribute_of, kin_of
from tb_gradflow.trace.graph.flat_ops import FlatOp, Input, Known, Ref, consumers
from tb_gradflow.trace.graph.flatten import Flattener
from tb_gradflow.trace.graph.gradient_call import Call
from tb_gradflow.trace.graph.reach import needed_for
from tb_gradflow.trace.graph.variables import MadeTensor, Owned
from tb_gradflow.trace.numerics.derived_values import UNNAMED, relation
from tb_gradflow.trace.source.frames import Frame
from tb_gradflow.trace.source.user_line import is_users

if TYPE_CHECKING:
    from tb_gradflow.trace.capture.collector import Collector


@dataclass(frozen=True, slots=True)
class Fixed:
    """A floating tensor that no op of the step computes.

    Attributes:
        symbol: Its symbol in the graph.
        outer: The eager tensor from which it was captured; None for a constant of the graph itself.
        uses: The flat ops that consume it, and as which input.
        op: Index of its flat op; -1 for a placeholder, which has none.
    """

    symbol: Any
    outer: Any
    uses: tuple[tuple[int, int], ...]
    op: int = -1

    @property
    def value(self) -> Any:
        if self.outer is not None:
            return self.outer.numpy()
        return tf.make_ndarray(self.symbol.op.get_attr("value"))


def link_snapshots(collector: Collector) -> None:
    """Gives each variable that the step does not read a path through the tensor that was computed from it, if there is
    one.
    """
    for call in collector.calls:
        unread = list(_unread(collector, call))
        if not unread:
            continue
        needed = needed_for(call.flattener.ops, [ref.op for ref in call.targets])
        fixed = [each for each in fixed_in(call.flattener) if any(op in needed for op, _ in each.uses)]
        initial = list(_initial_in(call.flattener, [collector.variables[each].variable.shape for each in unread]))
        stacks: dict[Any, Sequence[Frame]] = {}  # one for each function: its first
        for variable in unread:
            shape = collector.variables[variable].variable.shape
            early = next((each for each in initial if each.symbol.shape == shape), None)
            if early is None:
                _link(collector, call.flattener, variable, fixed, needed)
                continue
            initial.remove(early)
            stack = _in_function(call.flattener.ops[early.op])
            stack = stacks.setdefault(tuple((frame.file, frame.function) for frame in stack), stack)
            known = replace(collector.symbols.origin(early.symbol), api=COMPILED_EARLY, frames=stack)
            _insert(call.flattener, early, variable, collector.variables[variable], known)


def _initial_in(flattener: Flattener, shapes: Collection[Any]) -> Iterator[Fixed]:
    """The initial values of these shapes in functions that were compiled while Keras built the model: such a function
    contains the ops of the initializers, and does not read the variables, which had no values yet."""
    users = consumers(flattener.ops)
    for index, op in enumerate(flattener.ops):
        # The stack of each op is a hundred lines long.
        if not op.nested or not op.tensors or op.tensors[0].shape not in shapes or not _is_initial(op):
            continue
        uses = tuple(use for use in _uses(flattener.ops, users, index) if not _is_initial(flattener.ops[use[0]]))
        if uses:
            yield Fixed(op.tensors[0], None, uses, index)


def _uses(ops: Sequence[FlatOp], users: Mapping[int, Sequence[int]], index: int) -> Iterator[tuple[int, int]]:
    """The flat ops that consume the results of one, and as which input."""
    for user in dict.fromkeys(users.get(index, ())):
        yield from ((user, item.slot) for item in ops[user].inputs if item.ref.op == index)


def _is_initial(op: FlatOp) -> bool:
    """Whether Keras has computed it as the value of a variable that had none."""
    return any(
        outer.function == "value" and outer.file.endswith(_KERAS_VARIABLES) and inner.function != "_maybe_autocast"
        for outer, inner in itertools.pairwise(op.frames)
    )


def _in_function(op: FlatOp) -> Sequence[Frame]:
    """The stack of an op until the user's code in the function that was compiled."""
    stack = op.frames
    traced = (place for place, frame in enumerate(stack) if frame.function == "func_graph_from_py_func")
    begins = max(traced, default=0)
    first = next((place for place in range(begins, len(stack)) if is_users(stack[place].file)), len(stack))
    return stack[: first + 1]


_KERAS_VARIABLES = "/keras/src/backend/common/variables.py"


def fixed_in(flattener: Flattener) -> Iterator[Fixed]:
    """The floating tensors that come from outside of the step, or are constants in it."""
    captured = dict(_captured(flattener.graph))
    users = consumers(flattener.ops)
    for index, op in enumerate(flattener.ops):
        if op.type == "Const" and op.tensors[0].dtype.is_floating:
            outer = dict(_captured(op.op.graph)).get(op.tensors[0].name) if op.nested else None
            uses = tuple(_uses(flattener.ops, users, index))
            yield Fixed(op.tensors[0], captured.get(op.tensors[0].name, outer), uses, index)
    for name, listed in flattener.uses.items():
        if name in captured and captured[name].dtype.is_floating:
            yield Fixed(flattener.graph.get_tensor_by_name(name), captured[name], tuple(listed))


def _captured(graph: Any) -> Iterator[tuple[str, Any]]:
    for outer, inner in getattr(graph, "captures", ()):
        if isinstance(outer, tf.__internal__.EagerTensor):
            yield inner.name, outer


def _unread(collector: Collector, call: Call) -> Iterator[int]:
    read = {op.reads for op in call.flattener.ops if not op.backward}
    for variable, answer in call.variables.items():
        owned = collector.variables[variable]
        unread = answer.outcome == "none" and variable not in read and owned.trainable
        if unread and not isinstance(owned.variable, MadeTensor):
            yield variable


def _link(
    collector: Collector, flattener: Flattener, variable: int, fixed: Sequence[Fixed], needed: Collection[int]
) -> None:
    owned = collector.variables[variable]
    kin = functools.cache(lambda: kin_of(owned))  # looks through all objects of the process
    with tf.init_scope():
        try:
            value = owned.variable.numpy()
        except tf.errors.OpError:  # not initialized, or on a device that is gone
            return
        for each in fixed:
            place = _place(each.outer, owned)
            if place is not None:
                collector.variables.rebind(variable, place)
            found = UNNAMED if place is not None else _relation(value, each, kin)
            if found is not None:
                known = collector.symbols.origin(each.symbol)
                if known.frames is None and min(op for op, _ in each.uses) not in needed:
                    # Its own stack is that of its first use, which may belong to another loss.
                    first = min(op for op, _ in each.uses if op in needed)
                    known = replace(known, frames=flattener.ops[first].frames)
                _insert(flattener, each, variable, owned, replace(known, api=known.api or found or None))


def _place(outer: Any, owned: Owned) -> str | None:
    """The place where a captured tensor has replaced the variable; None if there is none."""
    if outer is None:
        return None
    return owned.rebound if outer is owned.source else attribute_of(outer, owned)


def _relation(value: Any, fixed: Fixed, kin: Callable[[], Collection[int]]) -> str | None:
    if fixed.outer is None:
        return relation(value, fixed.value)
    return relation(value, fixed.value, kin=lambda: id(fixed.outer) in kin())


def _insert(flattener: Flattener, fixed: Fixed, variable: int, owned: Owned, known: Known) -> None:
    """Adds an op that reads the variable, and one that represents the computation."""
    spec = tf.TensorSpec(owned.variable.shape, owned.variable.dtype.base_dtype)
    name = f"before/{owned.name}"
    read = FlatOp(f"{name}/read", "ReadVariableOp", fixed.symbol.op, (spec,), True, reads=variable)
    lead_through(flattener, Ref(flattener.put_before(read, -1), 0), fixed, name, known, -1)


def lead_through(
    flattener: Flattener, source: Ref, fixed: Fixed, name: str, known: Known, place: float | None = None
) -> None:
    """Makes the path from `source` to the consumers of a fixed tensor lead through an op of that name, which propagates
    no gradient.
    """
    left = Input(source, 0, "not_differentiable")
    made = FlatOp(name, known.type, fixed.symbol.op, (fixed.symbol,), True, [left], known=known)
    index = flattener.put_before(made, min(op for op, _ in fixed.uses) if place is None else place)
    for user, slot in fixed.uses:
        inputs = flattener.ops[user].inputs
        inputs[:] = [item for item in inputs if item.ref.op != fixed.op]
        inputs.append(Input(Ref(index, 0), slot))
