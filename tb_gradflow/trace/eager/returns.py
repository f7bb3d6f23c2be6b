"""Which values that left an eager step came back: as a constant, as an op's attribute, or as a decision.

Python does not track what happens to a number. The evidence, best first: a constant has exactly the value that left;
the constant, or an op of the loss, was created by the exit's own statement or by a statement that reads a name which
the exit's statement assigned; a constant was created after the exit, with a value that is not a literal there. If a
value is only printed or passed to a call, exactly that value must come back.

A solver may take out a value a thousand times in a step, and create ten thousand constants: nothing here compares every
constant with every exit.
"""

from __future__ import annotations

import ast
import bisect
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tb_gradflow.record.schema import Source
from tb_gradflow.trace.eager.exits import Exit
from tb_gradflow.trace.eager.shadow import Arrival, Shadow
from tb_gradflow.trace.graph.flat_ops import Input, Ref, consumers
from tb_gradflow.trace.graph.flatten import Flattener
from tb_gradflow.trace.graph.reach import needed_for
from tb_gradflow.trace.numerics.derived_values import is_telling
from tb_gradflow.trace.source.frames import frames_of
from tb_gradflow.trace.source.statements import is_only_told, names_in, names_kept, numbers_in, statement_at, steers
from tb_gradflow.trace.source.user_line import origin_of


@dataclass(frozen=True, slots=True)
class _Use:
    """An op of the loss that may have used a value from Python.

    Attributes:
        op: Index of the flat op.
        slot: Which of its inputs; one more than it has for an attribute.
        source: The user's line that created the constant, or the op.
        arrival: The constant; None for an attribute.
    """

    op: int
    slot: int
    source: Source | None
    arrival: Arrival | None = None

    @property
    def is_floating(self) -> bool:
        return self.arrival is not None and bool(self.arrival.symbol.dtype.is_floating)


def link_returns(shadow: Shadow, exits: Sequence[Exit], flattener: Flattener, targets: Sequence[Ref]) -> None:
    """Adds an input to each flat op that uses a value which came back from an exit."""
    if not exits or not targets:
        return
    needed = {op for op in needed_for(flattener.ops, [ref.op for ref in targets]) if not flattener.ops[op].backward}
    uses = _Uses(_constants(shadow, flattener, needed), (_made_by(flattener, op) for op in sorted(needed)))
    known: set[Source | None] = set()
    # All values that one statement passes to a call go the same way: if some of them are known to come back, the others
    # do too.
    for each in sorted(_left(exits, flattener), key=lambda left: not left.is_telling):
        if each.is_told:
            taken = uses.same(each) if each.is_telling or each.place in known else []
            taken = taken or (uses.holding(each) if each.is_telling else [])
        else:
            taken = _returns(each, uses) or _decided(each, flattener, targets)
        known.update({each.place} if taken else ())
        for use in taken:
            flattener.ops[use.op].inputs.append(Input(each.ref, use.slot, None if use.arrival is not None else "yes"))


@dataclass(frozen=True, slots=True)
class _Left:
    """An exit in the loss's graph, and facts about its statement.

    Attributes:
        value: The value that left.
        decides: Whether Python took it as a truth value.
        ref: The flat op that represents the exit.
        place: The user's line; None if there is none.
        is_told: Whether the statement only prints, logs or collects the value.
        steers: Whether it decides which other statements run, or how often.
    """

    value: Any
    decides: bool
    ref: Ref
    place: Source | None
    is_told: bool
    steers: bool

    @property
    def is_telling(self) -> bool:
        return is_telling(self.value)


def _left(exits: Iterable[Exit], flattener: Flattener) -> Iterator[_Left]:
    # The same line is parsed again in each iteration of a loop.
    read = functools.cache(lambda place: (is_only_told(place.file, place.line), steers(place.file, place.line)))
    for exit in exits:
        ref = flattener.ref(exit.op.outputs[0])
        if ref is None:
            continue
        place = origin_of(exit.frames, "").source
        told, decides_for_others = read(place) if place is not None else (False, False)
        is_steering = exit.decides or (decides_for_others and np.size(exit.value) == 1)
        yield _Left(exit.value, exit.decides, ref, place, told, is_steering)


class _Uses:
    """The ops of the loss that may have used a value from Python, found by the value or by the line of its exit.

    Each answer is limited to the ops closest to the exit and the last ones: a value from each iteration of a loop that
    comes back in each later iteration would give a quadratic number of edges without more information.

    Args:
        constants: The uses of constants.
        made: Each op of the loss, in order.
    """

    def __init__(self, constants: Iterable[_Use], made: Iterable[_Use]) -> None:
        listed = sorted(constants, key=lambda use: use.op)
        self._statement = functools.cache(lambda place: statement_at(place.file, place.line) if place else None)
        unwritten = [use for use in listed if not _is_written(use, self._statement(use.source))]
        self._unwritten, self._made = _by_source(unwritten), _by_source(made)
        self._floating = [use for use in unwritten if use.is_floating]
        self._values = _by_value(listed)
        self._elements = _by_element(listed)
        self._close: dict[tuple[object, ...], list[_Use]] = {}

    def same(self, left: _Left) -> list[_Use]:
        """The constants that hold exactly the value that left."""
        alike = self._values.get(np.size(left.value))
        if alike is None or np.asarray(left.value).dtype.kind not in "fiu":
            return []
        first, groups = alike
        value = float(np.ravel(left.value)[0])
        margin = abs(value) * 2 * _NEAR if np.isfinite(value) else 0.0
        near = groups[bisect.bisect_left(first, value - margin) : bisect.bisect_right(first, value + margin)]
        found = [use for group in near if _same_value(left.value, group[0]) for use in _after(left.ref.op, group)]
        return sorted(found, key=lambda use: use.op)

    def holding(self, left: _Left) -> list[_Use]:
        """The constants that a number is one of several elements of: a list of what was collected."""
        if np.size(left.value) != 1 or np.asarray(left.value).dtype.kind != "f":
            return []
        values, uses = self._elements
        value = float(np.ravel(left.value)[0])
        margin = abs(value) * _NEAR
        found = uses[bisect.bisect_left(values, value - margin) : bisect.bisect_right(values, value + margin)]
        return _after(left.ref.op, sorted({use.op: use for use in found}.values(), key=lambda use: use.op))

    def close(self, left: _Left, is_close: _Closeness, *, constants: bool) -> list[_Use]:
        """The constants that are not literals, or any ops, whose line is related to that of the exit."""
        key = (left.place, is_close, constants)
        if key not in self._close:
            by_source = self._unwritten if constants else self._made
            kept = self._statement(left.place)
            self._close[key] = sorted(
                (
                    use
                    for source, listed in by_source.items()
                    if _is_in_one_file(left.place, source) and _judged(is_close, kept, self._statement(source))
                    for use in listed
                ),
                key=lambda use: use.op,
            )
        return _after(left.ref.op, self._close[key])

    def floating(self, left: _Left) -> list[_Use]:
        """The floating constants that are not literals."""
        return _after(left.ref.op, self._floating)


_NEAR = 1e-6

# Of the uses that are found for an exit, this many following ones, and this many of the last.
_NEXT, _LAST = 16, 16


def _after(op: int, listed: Sequence[_Use]) -> list[_Use]:
    later = listed[bisect.bisect_right(listed, op, key=lambda use: use.op) :]
    return list(later) if len(later) <= _NEXT + _LAST else [*later[:_NEXT], *later[-_LAST:]]


def _by_source(uses: Iterable[_Use]) -> Mapping[Source | None, Sequence[_Use]]:
    found: dict[Source | None, list[_Use]] = {}
    for use in uses:
        found.setdefault(use.source, []).append(use)
    return found


def _by_value(constants: Iterable[_Use]) -> Mapping[int, tuple[Sequence[float], Sequence[Sequence[_Use]]]]:
    """For each number of elements: the first element of each distinct value, sorted, and the constants that hold this
    value.
    """
    groups: dict[tuple[int, bytes], list[_Use]] = {}
    for use in constants:
        value = _value(use)
        if value.size and value.dtype.kind in "fiu" and not np.isnan(value).any():
            groups.setdefault((value.size, np.ravel(value).astype(np.float64).tobytes()), []).append(use)
    found: dict[int, list[tuple[float, list[_Use]]]] = {}
    for (size, _), listed in groups.items():
        found.setdefault(size, []).append((float(np.ravel(_value(listed[0]))[0]), listed))
    ordered = {size: sorted(listed, key=lambda each: each[0]) for size, listed in found.items()}
    return {size: ([first for first, _ in listed], [group for _, group in listed]) for size, listed in ordered.items()}


# A list of what a step collected is not longer than that.
_COLLECTED = 256


def _by_element(constants: Iterable[_Use]) -> tuple[Sequence[float], Sequence[_Use]]:
    """The elements of all short floating constants that have several, in order of size, and the use of each."""
    found: list[tuple[float, _Use]] = []
    for use in constants:
        value = _value(use)
        if use.is_floating and 1 < value.size <= _COLLECTED and np.isfinite(value).all():
            found += [(float(each), use) for each in np.ravel(value)]
    found.sort(key=lambda each: each[0])
    return [value for value, _ in found], [use for _, use in found]


def _constants(shadow: Shadow, flattener: Flattener, needed: set[int]) -> Iterator[_Use]:
    users = consumers(flattener.ops)
    for arrival in shadow.arrivals:
        if not arrival.inside or arrival.symbol.dtype.is_bool:
            continue
        ref = flattener.ref(arrival.symbol)
        taken = flattener.uses.get(arrival.symbol.name, []) if ref is None else _taken(flattener, users, ref.op)
        for op, slot in taken:
            if op in needed:
                frames = arrival.frames or frames_of(flattener.ops[op].op.traceback)
                yield _Use(op, slot, origin_of(frames, "").source, arrival)


def _taken(flattener: Flattener, users: Mapping[int, list[int]], constant: int) -> list[tuple[int, int]]:
    return [
        (user, item.slot)
        for user in dict.fromkeys(users.get(constant, ()))
        for item in flattener.ops[user].inputs
        if item.ref.op == constant
    ]


def _made_by(flattener: Flattener, op: int) -> _Use:
    flat = flattener.ops[op]
    return _Use(op, len(flat.op.inputs), origin_of(frames_of(flat.op.traceback), flat.type).source)


def _returns(left: _Left, uses: _Uses) -> list[_Use]:
    """The ops that used the value that came back; empty if none did, as far as can be known."""
    if left.decides:
        return []
    same = uses.same(left)
    if same and not _is_plain(left.value):
        return same
    for is_close in (_is_same_statement, _is_named):
        close = uses.close(left, is_close, constants=True)
        taken = [use for use in close if _same_value(left.value, use)] or [use for use in close if use.is_floating]
        if taken := taken or uses.close(left, is_close, constants=False):
            return taken
    return [] if left.steers else uses.floating(left)


def _decided(left: _Left, flattener: Flattener, targets: Sequence[Ref]) -> list[_Use]:
    """Everything that Python does after a decision depends on it; the targets represent all of that."""
    if not left.steers:
        return []
    return [_made_by(flattener, op) for op in sorted({target.op for target in targets if target.op > left.ref.op})]


def _same_value(left: Any, use: _Use) -> bool:
    """Whether the constant holds exactly the numbers that left, in any shape and type."""
    left, back = np.asarray(left), _value(use)
    if left.size != back.size or not left.size or left.dtype.kind not in "fiu" or back.dtype.kind not in "fiu":
        return False
    return bool(np.allclose(np.ravel(left), np.ravel(back), rtol=_NEAR, atol=0))


def _value(use: _Use) -> Any:
    assert use.arrival is not None
    return np.asarray(use.arrival.tensor._numpy_internal())


def _is_plain(value: Any) -> bool:
    """Whether a value is too common to be evidence: a single small integer."""
    value = np.asarray(value)
    return bool(value.size == 1 and float(value.ravel()[0]).is_integer() and abs(float(value.ravel()[0])) < 100)


_Closeness = Callable[[ast.stmt, ast.stmt], bool]


def _is_same_statement(left: ast.stmt, back: ast.stmt) -> bool:
    return left is back


def _is_named(left: ast.stmt, back: ast.stmt) -> bool:
    """Whether a statement reads a name that the exit's statement assigned."""
    return bool(names_kept(left) & names_in(back))


def _is_in_one_file(left: Source | None, back: Source | None) -> bool:
    return left is not None and back is not None and left.file == back.file


def _judged(is_close: _Closeness, left: ast.stmt | None, back: ast.stmt | None) -> bool:
    return left is not None and back is not None and is_close(left, back)


def _is_written(use: _Use, statement: ast.stmt | None) -> bool:
    """Whether the constant is a literal in the user's line, or a number from a library function."""
    value = _value(use)
    if value.size != 1 or value.dtype.kind not in "fiu":
        return False
    if statement is None:
        return True
    number, written = float(value.ravel()[0]), numbers_in(statement)
    return any(np.isclose(abs(number), abs(each), rtol=1e-6, atol=0) for each in written)
