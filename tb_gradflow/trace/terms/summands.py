"""Finds the terms of a loss in the graph of its step.

It starts at the loss and goes back through sums to their inputs, and through means and weights to their operands. It
stops where a person would: `recon + beta * kl` has two terms, and `kl` is one term even if its formula is a sum. So a
sum over a batch is split only if the user's line adds values that have names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tb_gradflow.analyse.graph.op_sets import MEANS, QUOTIENTS, SUMS
from tb_gradflow.trace.graph.differentiable import custom_gradient_name, is_differentiable_dtype
from tb_gradflow.trace.terms.linear import HANDING_ON, PACKED, WEIGHTED, Actual, is_small, weight_of_input
from tb_gradflow.trace.terms.written import Written, is_named, parts_of, written_by

# A running total of this many parts is not a loss that a person would split, and Python's stack is limited.
_DEEPEST = 150


@dataclass(frozen=True, slots=True)
class Inside:
    """A term that a nested function computes, of which the step's tape knows only the call.

    Attributes:
        value: Its value, in the step.
        targets: The inputs of the call that its gradient reaches.
        gradients: The gradient at each of them.
        ref: Its flat op.
    """

    value: Any
    targets: Sequence[Any]
    gradients: Sequence[Any]
    ref: Any


@dataclass(frozen=True, slots=True)
class Summand:
    """A term, or a node on the path to terms.

    Attributes:
        tensor: In the graph.
        weight: The weight of each element in the loss, a tensor of the step with the same shape.
        written: The user's expression for it.
        moves: Whether it depends on the sources of a gradient.
        origin: The tensor whose line names it; None if that is the tensor itself.
        inside: If it lies inside of a nested function: what is known of it outside.
        operand: The only thing that it is computed from, by a mean or a weight; None if that is not a term.
    """

    tensor: Any
    weight: Any
    written: Written
    moves: bool = True
    origin: Any = None
    inside: Inside | None = None
    operand: Summand | None = None

    @property
    def made_by(self) -> Any:
        """The tensor whose line names it."""
        return self.tensor if self.origin is None else self.origin


@dataclass(frozen=True, slots=True)
class Ground:
    """Functions that describe the graph.

    Attributes:
        actual: The tensor of the step that a tensor of the graph represents; None if there is none.
        moves: Whether a tensor depends on the sources of a gradient.
        is_constant: Whether a tensor depends only on constants.
        in_layer: Whether an op belongs to a layer.
    """

    actual: Actual
    moves: Callable[[Any], bool]
    is_constant: Callable[[Any], bool]
    in_layer: Callable[[Any], bool]


def summands_of(targets: Sequence[tuple[Any, Any]], ground: Ground, written: Written | None = None) -> list[Summand]:
    """The terms of the differentiated value, each tensor once; `targets` are tensors of the graph, with the weight of
    each, and `written` is the user's expression for them.
    """
    found: list[Summand] = []
    for tensor, weight in targets:
        for each in _taken_apart(Summand(tensor, weight, written or Written()), ground, 0):
            if not ground.is_constant(each.tensor):
                _add(found, replace(each, moves=ground.moves(each.tensor)))
    return found


def _taken_apart(here: Summand, ground: Ground, depth: int) -> list[Summand]:
    """The terms that a tensor is the sum of; if it is a single term, itself, without the weight that is written with
    it.
    """
    parts = list(_parts(here, ground)) if depth < _DEEPEST else []
    # `1 - similarity` is no sum of terms.
    parts = [part for part in parts if not ground.is_constant(part.tensor)] or parts
    found = [each for part in parts for each in _taken_apart(part, ground, depth + 1)]
    if len(parts) != 1 or len(found) != 1:
        return found or [here]
    # A value with a name is the term. Without a name, it is the number, and not the operand of its mean.
    behind = written_by(here.tensor.op, here.written)
    here = replace(here, operand=found[0])
    if behind.is_settled:
        return [here if here.written.name else replace(here, written=behind)]
    if not _is_like(here.tensor, parts[0].tensor):
        return [replace(here, written=found[0].written, origin=found[0].made_by)]
    return found


def _is_like(one: Any, other: Any) -> bool:
    return bool(one.shape.rank == other.shape.rank)


def _add(found: list[Summand], new: Summand) -> None:
    """Joins a tensor that is added twice into one term."""
    for place, known in enumerate(found):
        if known.tensor is new.tensor:
            found[place] = replace(known, weight=known.weight + new.weight)
            return
    found.append(new)


def _parts(here: Summand, ground: Ground) -> Iterator[Summand]:
    op = here.tensor.op
    if custom_gradient_name(op) is not None or len(op.outputs) != 1 or not ground.moves(here.tensor):
        return
    written = written_by(op, here.written)
    slots = list(_slots(op, ground))
    if op.type in SUMS | PACKED:
        if any(ground.actual(op.inputs[slot]) is None for slot in slots) or not _is_open(op, written, slots, ground):
            return
        nodes = parts_of(written, op)
        for slot in slots:
            weight = weight_of_input(op, slot, here.weight, ground.actual)
            yield Summand(op.inputs[slot], weight, nodes[slot])
    elif len(slots) == 1 and ground.actual(op.inputs[slots[0]]) is not None:
        weight = weight_of_input(op, slots[0], here.weight, ground.actual)
        yield Summand(op.inputs[slots[0]], weight, written.through(op, slots[0]))


def _slots(op: Any, ground: Ground) -> Iterator[int]:
    """The inputs that terms come from; none if the op belongs to a term itself."""
    if op.type in SUMS | PACKED:
        if all(tensor.shape.rank == 0 if op.type in PACKED else is_small(tensor) for tensor in op.inputs):
            yield from range(len(op.inputs))
    elif op.type in HANDING_ON or op.type in MEANS:
        given = op.inputs[0]
        if is_small(given) and is_differentiable_dtype(given) and (op.type in HANDING_ON or _is_whole(op)):
            yield 0
    elif op.type in WEIGHTED and all(is_small(tensor) for tensor in op.inputs):
        moving = [slot for slot, tensor in enumerate(op.inputs) if ground.moves(tensor)]
        if moving == [0] or (len(moving) == 1 and op.type not in QUOTIENTS):
            yield moving[0]


def _is_whole(op: Any) -> bool:
    """Whether a sum or a mean covers all axes of its input."""
    return bool(op.outputs[0].shape.num_elements() == 1)


def _is_open(op: Any, written: Written, slots: Sequence[int], ground: Ground) -> bool:
    """Whether a person would call the summands here terms."""
    if op.type in PACKED:
        return written.is_open
    numbers = all(tensor.shape.num_elements() == 1 for tensor in op.inputs)
    nodes = parts_of(written, op)
    named = all(is_named(nodes[slot]) for slot in slots if ground.moves(op.inputs[slot]))
    if not written.is_open:
        return False
    if not written.is_users:
        return numbers
    if not numbers or ground.in_layer(op):
        return named
    # Python's `sum` begins with `0 + a`.
    is_begun = not written.name and sum(not ground.is_constant(op.inputs[slot]) for slot in slots) == 1
    return named or written.is_first or written.is_running or is_begun
