"""Where the ops of two traces differ, whatever their values are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tb_gradflow.analyse.divergence.pairing import Pairing
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.record.schema import Edge, Op

_COPIES = frozenset({"Identity", "IdentityN", "Snapshot"})
"""Ops that change neither a value nor its gradient: a refactoring adds and removes them."""

Position = tuple[float, int]
"""Sorts the ops of both traces: an op that only the second trace has follows the last of its inputs."""


@dataclass(frozen=True, slots=True)
class OpDifference:
    """An op that only one trace has, or that differs.

    Attributes:
        a: Its index in the first trace; None if that does not have it.
        b: Its index in the second trace; None if that does not have it.
        position: Its position among the ops of both.
        text: What differs; empty for an op that only one trace has.
        backward: Whether only its gradient differs.
    """

    a: int | None
    b: int | None
    position: Position
    text: str = ""
    backward: bool = False


def op_differences(pair: Pairing) -> tuple[OpDifference, ...]:
    """In topological order."""
    of_a = {b: a for a, b in pair.ops.items()}
    places = _places_in_a(pair, of_a)
    found: list[OpDifference] = []
    for number, op in enumerate(pair.a.ops):
        other = pair.ops.get(number)
        if other is None:
            if not _is_copy(op):
                found.append(OpDifference(number, None, (float(number), 0)))
            continue
        text, backward = _difference(pair, op, pair.b.ops[other])
        if text:
            found.append(OpDifference(number, other, (float(number), 0), text, backward))
    for number, op in enumerate(pair.b.ops):
        if number not in of_a and not _is_copy(op):
            found.append(OpDifference(None, number, (places[number], 1)))
    return tuple(sorted(found, key=lambda each: (each.position, each.b or 0)))


def _is_copy(op: Op) -> bool:
    return op.type in _COPIES and op.custom_gradient is None


def _places_in_a(pair: Pairing, of_a: dict[int, int]) -> list[float]:
    """For each op of the second trace the index in the first one of its partner, or of the last of its inputs."""
    places: list[float] = []
    for number, op in enumerate(pair.b.ops):
        if number in of_a:
            places.append(float(of_a[number]))
        else:
            places.append(max((places[edge.op] for edge in op.inputs if 0 <= edge.op < number), default=-1.0))
    return places


def _difference(pair: Pairing, a: Op, b: Op) -> tuple[str, bool]:
    """What differs in two ops that are one, and whether only their gradients do."""
    if a.type != b.type:
        return f"`{a.type}` → `{b.type}`", False
    types = [", ".join(output.dtype for output in op.outputs) for op in (a, b)]
    if types[0] != types[1]:
        return f"{types[0]} → {types[1]}", False
    for x, y in zip(a.outputs, b.outputs, strict=False):
        if not _fit(x.shape, y.shape):
            return f"shape {_shape(x.shape)} → {_shape(y.shape)}", False
    constants = _constants(a, b)
    if constants:
        return constants, False
    if _inputs_differ(pair, a, b):
        return "other inputs", False
    if a.custom_gradient != b.custom_gradient:
        return f"gradient {_gradient(a)} → {_gradient(b)}", True
    if [edge.passes for edge in a.inputs] != [edge.passes for edge in b.inputs]:
        return "propagates its gradient to other inputs", True
    return "", False


def _gradient(op: Op) -> str:
    return "of TensorFlow" if op.custom_gradient is None else f"`{op.custom_gradient}`"


def _fit(a: Sequence[int] | None, b: Sequence[int] | None) -> bool:
    """Whether two shapes may be one; a last batch may be smaller, so the first size is not compared."""
    if a is None or b is None:
        return True
    return len(a) == len(b) and all(x == y or -1 in (x, y) for x, y in zip(a[1:], b[1:], strict=True))


def _shape(shape: Sequence[int] | None) -> str:
    return "unknown" if shape is None else "[" + ", ".join("?" if size < 0 else str(size) for size in shape) + "]"


def _constants(a: Op, b: Op) -> str:
    values = [{each.input: each.value for each in op.constants} for op in (a, b)]
    for place in sorted(values[0].keys() | values[1].keys()):
        x, y = values[0].get(place), values[1].get(place)
        if x is not None and y is not None and x != y:
            return f"constant {x:g} → {y:g}"
    return ""


def _inputs_differ(pair: Pairing, a: Op, b: Op) -> bool:
    """Whether an input comes from another op. Unknown partners count for nothing: they are listed themselves."""
    if a.input_count is not None and b.input_count is not None and a.input_count != b.input_count:
        return True
    theirs = {edge.input: edge for edge in b.inputs}
    for edge in a.inputs:
        other = theirs.get(edge.input)
        if other is None:
            return True
        origin, other_origin = _beyond_copies(pair.a.ops, edge), _beyond_copies(pair.b.ops, other)
        partner = pair.ops.get(origin[0])
        if partner is not None and (partner, origin[1]) != other_origin and other_origin[0] in pair.ops.values():
            return True
    return len(a.inputs) != len(b.inputs)


def _beyond_copies(ops: Sequence[Op], edge: Edge) -> tuple[int, int]:
    while edge.op >= 0 and _is_copy(ops[edge.op]) and len(ops[edge.op].inputs) == 1:
        edge = ops[edge.op].inputs[0]
    return edge.op, edge.output


def ancestors(ops: Sequence[Op], ends: Iterable[int]) -> set[int]:
    """The ops that some ops depend on, these included."""
    return set(walked(ends, lambda number: _producers(ops[number])))


def descendants(ops: Sequence[Op], starts: Iterable[int]) -> set[int]:
    """The ops that depend on some ops, these included."""
    found = set(starts)
    for number, op in enumerate(ops):
        if number not in found and any(producer in found for producer in _producers(op)):
            found.add(number)
    return found


def depth_of(ops: Sequence[Op]) -> int:
    """The number of ops on the longest path."""
    depths: list[int] = []
    for number, op in enumerate(ops):
        depths.append(1 + max((depths[each] for each in _producers(op) if each < number), default=0))
    return max(depths, default=1)


def _producers(op: Op) -> Iterator[int]:
    return (edge.op for edge in op.inputs if edge.op >= 0)
