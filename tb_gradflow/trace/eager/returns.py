"""Which values that left an eager step came back: as a constant, as an op's attribute, or as a decision.

Python keeps no account of what becomes of a number. What counts as evidence, the best first: a constant has the very
value that left; it was made, or an op of the loss was, by the exit's own statement or by one that reads a name which
the exit's statement kept; a constant was made after the exit, of a value that is not written out there. Of a value that
is only printed or handed to a call, the very value must come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
    """An op of the loss that may have taken a value of Python's.

    Attributes:
        op: Index of the flat op.
        slot: Which of its inputs; one more than it has for an attribute.
        source: The user's line that made the constant, or the op.
        arrival: The constant; null for an attribute.
    """

    op: int
    slot: int
    source: Source | None
    arrival: Arrival | None = None

    @property
    def is_floating(self) -> bool:
        return self.arrival is not None and bool(self.arrival.symbol.dtype.is_floating)


def link_returns(shadow: Shadow, exits: Sequence[Exit], flattener: Flattener, targets: Sequence[Ref]) -> None:
    """Adds an input to each flat op that takes what came back from an exit."""
    if not exits or not targets:
        return
    needed = {op for op in needed_for(flattener.ops, [ref.op for ref in targets]) if not flattener.ops[op].backward}
    constants = list(_constants(shadow, flattener, needed))
    made = [_made_by(flattener, op) for op in sorted(needed)]
    known: set[Source | None] = set()
    # What one statement hands to a call goes one way: where some of it is known to come back, the rest does too.
    for each in sorted(exits, key=lambda exit: not is_telling(exit.value)):
        left = flattener.ref(each.op.outputs[0])
        if left is None:
            continue
        later = [[use for use in uses if use.op > left.op] for uses in (constants, made)]
        if _is_told(each):
            taken = _same(each, later[0]) if is_telling(each.value) or _place(each) in known else []
        else:
            taken = _returns(each, *later) or _decided(each, flattener, left, targets)
        known.update({_place(each)} if taken else ())
        for use in taken:
            flattener.ops[use.op].inputs.append(Input(left, use.slot, None if use.arrival is not None else "yes"))


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


def _returns(exit: Exit, constants: Sequence[_Use], made: Sequence[_Use]) -> list[_Use]:
    """What took the value that came back; empty if nothing did, as far as anybody can tell."""
    if exit.decides:
        return []
    same = _same(exit, constants)
    if same and not _is_plain(exit.value):
        return same
    left = _place(exit)
    for is_close in (_is_same_statement, _is_named):
        close = [use for use in constants if is_close(left, use.source) and not _is_written(use)]
        floating = [use for use in close if use.is_floating]
        taken = [use for use in close if use in same] or floating
        if taken := taken or [use for use in made if is_close(left, use.source)]:
            return taken
    if _steers(exit):
        return []
    return [use for use in constants if use.is_floating and not _is_written(use)]


def _same(exit: Exit, constants: Sequence[_Use]) -> list[_Use]:
    return [use for use in constants if _same_value(exit.value, use)]


def _decided(exit: Exit, flattener: Flattener, left: Ref, targets: Sequence[Ref]) -> list[_Use]:
    """Everything that Python does after a decision depends on it; the targets stand for that."""
    if not _steers(exit):
        return []
    return [_made_by(flattener, op) for op in sorted({target.op for target in targets if target.op > left.op})]


def _is_told(exit: Exit) -> bool:
    place = _place(exit)
    return place is not None and is_only_told(place.file, place.line)


def _steers(exit: Exit) -> bool:
    place = _place(exit)
    return exit.decides or (place is not None and np.size(exit.value) == 1 and steers(place.file, place.line))


def _place(exit: Exit) -> Source | None:
    return origin_of(exit.frames, "").source


def _same_value(left: Any, use: _Use) -> bool:
    """Whether the constant holds the very numbers that left, in whatever shape and type."""
    left, back = np.asarray(left), _value(use)
    if left.size != back.size or not left.size or left.dtype.kind not in "fiu" or back.dtype.kind not in "fiu":
        return False
    return bool(np.allclose(np.ravel(left), np.ravel(back), rtol=1e-6, atol=0))


def _value(use: _Use) -> Any:
    assert use.arrival is not None
    return np.asarray(use.arrival.tensor._numpy_internal())


def _is_plain(value: Any) -> bool:
    """Whether a value is too common to tell anything: a single small integer."""
    value = np.asarray(value)
    return bool(value.size == 1 and float(value.ravel()[0]).is_integer() and abs(float(value.ravel()[0])) < 100)


def _in_one_file(judge: Callable[[Any, Any], bool]) -> Callable[[Source | None, Source | None], bool]:
    def together(left: Source | None, back: Source | None) -> bool:
        if left is None or back is None or left.file != back.file:
            return False
        out, into = statement_at(left.file, left.line), statement_at(back.file, back.line)
        return out is not None and into is not None and judge(out, into)

    return together


# Whether the statement that takes the value is that of the exit, or reads a name that the exit's statement kept.
_is_same_statement = _in_one_file(lambda out, into: out is into)
_is_named = _in_one_file(lambda out, into: bool(names_kept(out) & names_in(into)))


def _is_written(use: _Use) -> bool:
    """Whether the constant stands in the user's line, or is a number that a library's function brought along."""
    value = _value(use)
    if value.size != 1 or value.dtype.kind not in "fiu":
        return False
    statement = statement_at(use.source.file, use.source.line) if use.source is not None else None
    if statement is None:
        return True
    number, written = float(value.ravel()[0]), numbers_in(statement)
    return any(np.isclose(abs(number), abs(each), rtol=1e-6, atol=0) for each in written)
