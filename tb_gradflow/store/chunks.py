"""The statistics of a log as stored, and the conditions on them, checked once, where they enter the program."""

from __future__ import annotations

import itertools
import math
import struct
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from tb_gradflow.errors import DamagedRecord
from tb_gradflow.record.cost import Cost
from tb_gradflow.store.layout import COST_COLUMNS, FIXED_STEP_COLUMNS, Tag

_FLOAT32_BYTES, _FLOAT64_BYTES = 4, 8

# Above it float64 cannot represent every integer; and the years from 1 to 9999, which Python can represent.
_MOST_STEPS = 10**15
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799


@dataclass(frozen=True, slots=True)
class Array:
    """Numbers as they are stored in the log: little-endian, row by row.

    Attributes:
        shape: Sizes.
        data: The numbers.
        problem: Why they cannot be read; empty where they can.
    """

    shape: tuple[int, ...]
    data: bytes
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ChunkHead:
    """A chunk without its numbers.

    Attributes:
        id: Its first step.
        trace: Index of its trace.
        steps: Its steps, increasing.
        wall_times: Seconds since the epoch, one a step.
        losses: For each step the value of each target.
    """

    id: int
    trace: int
    steps: tuple[int, ...]
    wall_times: tuple[float, ...]
    losses: tuple[tuple[float, ...], ...]


def read_head(tag: Tag, table: Array) -> ChunkHead:
    """The head that the float64 table of a `steps` tag is. Raises DamagedRecord."""
    if len(table.shape) != 2 or table.shape[0] < 1 or table.shape[1] < FIXED_STEP_COLUMNS:
        _refuse(tag, table, f"[steps, {FIXED_STEP_COLUMNS} or more]")
    _check_bytes(tag, table, _FLOAT64_BYTES)
    rows = list(struct.iter_unpack(f"<{table.shape[1]}d", table.data))
    steps, traces = [row[0] for row in rows], {row[2] for row in rows}
    if not all(0 <= step < _MOST_STEPS and step == int(step) for step in steps) or steps[0] != tag.number:
        raise DamagedRecord(f"damaged log: {tag}: expected steps from {tag.number}, got {steps[:4]}")
    if any(after <= before for before, after in itertools.pairwise(steps)):
        raise DamagedRecord(f"damaged log: {tag}: expected steps that increase, got {steps[:4]}")
    if len(traces) != 1 or not all(0 <= trace < _MOST_STEPS and trace == int(trace) for trace in traces):
        raise DamagedRecord(f"damaged log: {tag}: expected the index of one trace, got {sorted(traces, key=str)[:4]}")
    wall_times = tuple(row[1] for row in rows)
    if not all(_FIRST_SECOND <= time <= _LAST_SECOND for time in wall_times):
        raise DamagedRecord(f"damaged log: {tag}: expected seconds since the epoch, got {wall_times[:4]}")
    return ChunkHead(
        id=tag.number,
        trace=int(rows[0][2]),
        steps=tuple(map(int, steps)),
        wall_times=wall_times,
        losses=tuple(row[FIXED_STEP_COLUMNS:] for row in rows),
    )


def read_cost(tag: Tag, table: Array) -> Cost:
    """The content of the table of a `cost` tag. Raises DamagedRecord."""
    if table.shape != (1, len(COST_COLUMNS)):
        _refuse(tag, table, f"[1, {len(COST_COLUMNS)}]")
    _check_bytes(tag, table, _FLOAT64_BYTES)
    numbers = struct.unpack(f"<{len(COST_COLUMNS)}d", table.data)
    if not all(map(math.isfinite, numbers)) or min(numbers[:2]) < 0:
        raise DamagedRecord(f"damaged log: {tag}: expected numbers of steps and seconds, got {numbers}")
    steps, recorded, *seconds = numbers
    return Cost(int(steps), int(recorded), *seconds)


def check_numbers(tag: Tag, numbers: Array, head: ChunkHead, columns: int) -> None:
    """Raises DamagedRecord where they are not float32 `[steps, any, columns]`; an older log may have fewer columns."""
    steps = len(head.steps)
    if len(numbers.shape) != 3 or numbers.shape[0] != steps or not 0 < numbers.shape[2] <= columns:
        _refuse(tag, numbers, f"[{steps}, rows, {columns}]")
    _check_bytes(tag, numbers, _FLOAT32_BYTES)


def in_order(heads: Sequence[ChunkHead]) -> tuple[list[ChunkHead], list[ChunkHead]]:
    """The chunks by their steps, of which no two overlap; and those that would."""
    kept: list[ChunkHead] = []
    left_out: list[ChunkHead] = []
    for head in sorted(heads, key=lambda head: head.id):
        (left_out if kept and head.id <= kept[-1].steps[-1] else kept).append(head)
    return kept, left_out


def first_steps(head: ChunkHead, until: int | None) -> ChunkHead:
    """The chunk with its steps before that one; None is after all of them."""
    if until is None or head.steps[-1] < until:
        return head
    kept = bisect_left(head.steps, until)
    return ChunkHead(head.id, head.trace, head.steps[:kept], head.wall_times[:kept], head.losses[:kept])


def first_rows(array: Array, count: int) -> Array:
    """The numbers of the first steps of a chunk."""
    if array.shape[0] == count:
        return array
    return Array((count, *array.shape[1:]), array.data[: len(array.data) // array.shape[0] * count], array.problem)


def _check_bytes(tag: Tag, array: Array, each: int) -> None:
    if min(array.shape) < 0 or len(array.data) != math.prod(array.shape) * each:
        raise DamagedRecord(f"damaged log: {tag} holds {len(array.data)} bytes, its shape is {array.shape}")


def _refuse(tag: Tag, array: Array, expected: str) -> NoReturn:
    raise DamagedRecord(array.problem or f"damaged log: {tag} has shape {array.shape}, expected {expected}")
