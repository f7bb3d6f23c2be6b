"""Which parts of two traces are the same: variables, ops, losses, inputs. By name first, and then by structure."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tb_gradflow.analyse.report.variable_matching import match, unnumbered
from tb_gradflow.record.schema import Op, Trace

Part = TypeVar("Part")

Pairs = Mapping[int, int]
"""The index in the first trace -> the index in the second."""

_MOST_ALIGNED = 4_000_000
"""Pairs of ops without a common name that are aligned by their types; aligning more takes many seconds."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """The common parts of two traces.

    Attributes:
        a: The trace of the first run.
        b: The trace of the second run.
        variables: Those that both have, as are the next three.
        ops: Ops of one pair may have different types: then one has replaced the other.
        targets: The losses.
        inputs: The tensors of the batch.
    """

    a: Trace
    b: Trace
    variables: Pairs
    ops: Pairs
    targets: Pairs
    inputs: Pairs

    def variables_of_one(self) -> tuple[list[str], list[str]]:
        """The names of the variables that only the first trace has, and that only the second has."""
        there = set(self.variables.values())
        return (
            [each.name for number, each in enumerate(self.a.variables) if number not in self.variables],
            [each.name for number, each in enumerate(self.b.variables) if number not in there],
        )


def paired(a: Trace, b: Trace) -> Pairing:
    """Finds what two traces have in common."""
    variables = {pair.before: pair.now for pair in match(a.variables, b.variables)}
    names = [target.name for target in a.targets], [target.name for target in b.targets]
    targets = _by_order(*names) if len(names[0]) == len(names[1]) else _by_key(*names)
    inputs = [each.name for each in a.inputs], [each.name for each in b.inputs]
    is_same = len(inputs[0]) == len(inputs[1])
    return Pairing(a, b, variables, _ops(a, b, variables), targets, _by_order(*inputs) if is_same else _by_key(*inputs))


def _by_order(a: Sequence[str], b: Sequence[str]) -> Pairs:
    return {number: number for number in range(min(len(a), len(b)))}


def _by_key(a: Sequence[str], b: Sequence[str]) -> Pairs:
    places = {name: number for number, name in enumerate(b)}
    return {number: places[name] for number, name in enumerate(a) if name in places}


def _ops(a: Trace, b: Trace, variables: Pairs) -> Pairs:
    if [_named(op) for op in a.ops] == [_named(op) for op in b.ops]:
        return {number: number for number in range(len(a.ops))}
    pairs: dict[int, int] = {}
    left, right = list(range(len(a.ops))), list(range(len(b.ops)))

    def take(found: Iterable[tuple[int, int]]) -> None:
        nonlocal left, right
        pairs.update(found)
        taken = set(pairs.values())
        left = [number for number in left if number not in pairs]
        right = [number for number in right if number not in taken]

    def read(one: int, other: int) -> bool:
        """Whether two ops read the same variable, if any."""
        x, y = a.ops[one].reads, b.ops[other].reads
        return x is None and y is None if x is None or y is None else variables.get(x) == y

    take(_reads(a, b, variables))
    # Names are counted on in every model, and so are the names of the ops in it: the order decides.
    take((x, y) for x, y in _families(a, b, left, right, lambda op: (unnumbered(op.name), op.type)) if read(x, y))
    take((x, y) for x, y in _same_names(a, b, left, right) if read(x, y))
    if len(left) * len(right) <= _MOST_ALIGNED:
        take((x, y) for x, y in _aligned(a, b, left, right) if read(x, y))
    take(_replaced(a, b, left, right, pairs))
    return pairs


def _named(op: Op) -> Hashable:
    return op.name, op.type, op.outputs


def _reads(a: Trace, b: Trace, variables: Pairs) -> Iterable[tuple[int, int]]:
    """The first op that reads a variable, the second one, and so on."""
    of_b: dict[int, list[int]] = defaultdict(list)
    for number, op in enumerate(b.ops):
        if op.reads is not None:
            of_b[op.reads].append(number)
    queues = {variable: iter(numbers) for variable, numbers in of_b.items()}
    for number, op in enumerate(a.ops):
        queue = queues.get(variables.get(op.reads, -1)) if op.reads is not None else None
        other = None if queue is None else next(queue, None)
        if other is not None:
            yield number, other


def _families(
    a: Trace, b: Trace, left: Sequence[int], right: Sequence[int], key: Callable[[Op], Hashable]
) -> Iterable[tuple[int, int]]:
    ours, theirs = _grouped(a, left, key), _grouped(b, right, key)
    for family, numbers in ours.items():
        others = theirs.get(family, ())
        if len(numbers) == len(others):
            yield from zip(numbers, others, strict=True)


def _grouped(trace: Trace, numbers: Sequence[int], key: Callable[[Op], Hashable]) -> dict[Hashable, list[int]]:
    found: dict[Hashable, list[int]] = defaultdict(list)
    for number in numbers:
        found[key(trace.ops[number])].append(number)
    return found


def _same_names(a: Trace, b: Trace, left: Sequence[int], right: Sequence[int]) -> Iterable[tuple[int, int]]:
    named = {_named(b.ops[number]): number for number in right}
    for number in left:
        other = named.get(_named(a.ops[number]))
        if other is not None:
            yield number, other


def _aligned(a: Trace, b: Trace, left: Sequence[int], right: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Ops of the same types in the same order, as in the lines of two files."""
    kinds = [_kind(a.ops[number]) for number in left], [_kind(b.ops[number]) for number in right]
    for x, y, size in difflib.SequenceMatcher(None, *kinds, autojunk=False).get_matching_blocks():
        yield from zip(left[x : x + size], right[y : y + size], strict=True)


def _kind(op: Op) -> Hashable:
    return op.type, tuple(output.dtype for output in op.outputs), op.reads is None


def _replaced(a: Trace, b: Trace, left: Sequence[int], right: Sequence[int], pairs: Pairs) -> Iterable[tuple[int, int]]:
    """Ops without a partner whose inputs are the same."""
    waiting: dict[Hashable, list[int]] = defaultdict(list)
    for number in right:
        if b.ops[number].inputs:
            waiting[tuple((edge.op, edge.output) for edge in b.ops[number].inputs)].append(number)
    for number in left:
        inputs = a.ops[number].inputs
        same = waiting.get(tuple((pairs.get(edge.op, edge.op), edge.output) for edge in inputs)) if inputs else None
        if same:
            yield number, same.pop(0)
