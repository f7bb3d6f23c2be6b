"""Which values that left an eager step came back: as a constant that the loss depends on, or as a decision.

Python keeps no account of what becomes of a number. What counts as evidence, the best first: a constant has the very
value that left; its line names what the exit's line kept; it was made after the exit, of a value that is not written
out there. A value that is only printed or logged comes back in none of these ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tb_gradflow.record.schema import Source
from tb_gradflow.trace.eager_exits import Exit
from tb_gradflow.trace.eager_shadow import Arrival, Shadow
from tb_gradflow.trace.flat_ops import Input, Ref, consumers
from tb_gradflow.trace.flatten import Flattener
from tb_gradflow.trace.lines import is_only_told, names_in, names_kept, numbers_in, statement_at, steers
from tb_gradflow.trace.reach import needed_for
from tb_gradflow.trace.source import frames_of, origin_of


@dataclass(frozen=True, slots=True)
class _Use:
    """An op that takes a constant that was made during the step.

    Attributes:
        arrival: The constant.
        op: Index of the flat op.
        slot: Which of its inputs.
        source: The user's line.
    """

    arrival: Arrival
    op: int
    slot: int
    source: Source | None

    @property
    def value(self) -> Any:
        return self.arrival.tensor._numpy_internal()


def link_returns(shadow: Shadow, exits: Sequence[Exit], flattener: Flattener, targets: Sequence[Ref]) -> None:
    """Adds an input to each flat op that takes what came back from an exit."""
    if not exits or not targets:
        return
    needed = {op for op in needed_for(flattener.ops, [ref.op for ref in targets]) if not flattener.ops[op].backward}
    uses = list(_uses(shadow, flattener, needed))
    for each in exits:
        left = flattener.ref(each.op.outputs[0])
        if left is None or _is_told(each):
            continue
        returns = _returns(each, [use for use in uses if use.op > left.op])
        for use in returns:
            flattener.ops[use.op].inputs.append(Input(left, use.slot))
        if not returns and _steers(each):
            for op in {target.op for target in targets if target.op > left.op}:
                inputs = flattener.ops[op].inputs
                inputs.append(Input(left, 1 + max((item.slot for item in inputs), default=-1), "yes"))


def _uses(shadow: Shadow, flattener: Flattener, needed: set[int]) -> Iterator[_Use]:
    users = consumers(flattener.ops)
    for arrival in shadow.arrivals:
        if not arrival.inside or arrival.symbol.dtype.is_bool:
            continue
        ref = flattener.ref(arrival.symbol)
        taken = flattener.uses.get(arrival.symbol.name, []) if ref is None else _taken(flattener, users, ref.op)
        for op, slot in taken:
            if op in needed:
                made = flattener.ops[op].op
                yield _Use(arrival, op, slot, origin_of(frames_of(made.traceback), made.type).source)


def _taken(flattener: Flattener, users: Mapping[int, list[int]], constant: int) -> list[tuple[int, int]]:
    return [
        (user, item.slot)
        for user in dict.fromkeys(users.get(constant, ()))
        for item in flattener.ops[user].inputs
        if item.ref.op == constant
    ]


def _returns(exit: Exit, uses: Sequence[_Use]) -> list[_Use]:
    """The uses of what came back; empty if nothing did, as far as anybody can tell."""
    if exit.decides:
        return []
    same = [use for use in uses if _same_value(exit.value, use.value)]
    if same and not _is_plain(exit.value):
        return same
    left = _place(exit)
    for is_close in (_is_same_statement, _is_named):
        close = [use for use in uses if is_close(left, use.source) and not _is_written(use)]
        floating = [use for use in close if use.arrival.symbol.dtype.is_floating]
        if found := [use for use in close if use in same] or floating or close:
            return found
    if _steers(exit):
        return []
    return [use for use in uses if use.arrival.symbol.dtype.is_floating and not _is_written(use)]


def _is_told(exit: Exit) -> bool:
    place = _place(exit)
    return place is not None and is_only_told(place.file, place.line)


def _steers(exit: Exit) -> bool:
    place = _place(exit)
    return exit.decides or (place is not None and np.size(exit.value) == 1 and steers(place.file, place.line))


def _place(exit: Exit) -> Source | None:
    return origin_of(exit.frames, "").source


def _same_value(left: Any, back: Any) -> bool:
    """Whether the constant holds the very numbers that left, in whatever shape and type."""
    left, back = np.asarray(left), np.asarray(back)
    if left.size != back.size or not left.size or left.dtype.kind not in "fiu" or back.dtype.kind not in "fiu":
        return False
    return bool(np.allclose(np.ravel(left), np.ravel(back), rtol=1e-6, atol=0))


def _is_plain(value: Any) -> bool:
    """Whether a value is too common to tell anything: a single small integer."""
    value = np.asarray(value)
    return bool(value.size == 1 and float(value.ravel()[0]).is_integer() and abs(float(value.ravel()[0])) < 100)


def _is_same_statement(left: Source | None, back: Source | None) -> bool:
    """Whether the statement that takes the constant is that of the exit."""
    if left is None or back is None or left.file != back.file:
        return False
    out = statement_at(left.file, left.line)
    return out is not None and out is statement_at(back.file, back.line)


def _is_named(left: Source | None, back: Source | None) -> bool:
    """Whether the statement that takes the constant reads a name that the exit's statement kept its result under."""
    if left is None or back is None or left.file != back.file:
        return False
    out, into = statement_at(left.file, left.line), statement_at(back.file, back.line)
    return out is not None and into is not None and bool(names_kept(out) & names_in(into))


def _is_written(use: _Use) -> bool:
    """Whether the constant stands in the user's line, or is a number that a library's function brought along."""
    value = np.asarray(use.value)
    if value.size != 1 or value.dtype.kind not in "fiu":
        return False
    statement = statement_at(use.source.file, use.source.line) if use.source is not None else None
    if statement is None:
        return True
    number = float(value.ravel()[0])
    return any(
        np.isclose(number, sign * written, rtol=1e-6, atol=0) for written in numbers_in(statement) for sign in (1, -1)
    )
