"""How the input of a function reached the value at which the function breaks, as far as the recorded steps of a run
show it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from tb_gradflow.analyse.over_time.unmoved import Piece
from tb_gradflow.record.schema import RANGE_STATISTICS, Trace

_SMALLEST, _LARGEST = (RANGE_STATISTICS.index(name) for name in ("smallest", "largest"))

# The number of recorded steps that are examined.
_NEAR = 256


@dataclass(frozen=True, slots=True)
class Ranged:
    """The range of an op's input in one step, over the finite elements; for a divisor, of its magnitudes."""

    step: int
    smallest: float
    largest: float


ValueCourses = Mapping[tuple[int, int], tuple[Ranged, ...]]
"""By op and input, as in the trace of the last step: the recorded steps in which something finite was given, in order.
"""


def value_courses_of(backwards: Iterable[Piece]) -> ValueCourses:
    """`backwards` are the recorded steps up to the one in question, the latest piece first. Ops of other traces are
    matched by name."""
    places: dict[tuple[str, int], tuple[int, int]] = {}
    found: dict[tuple[int, int], list[Ranged]] = {}
    looked_at = 0
    for number, piece in enumerate(backwards):
        rows = _rows(piece.trace)
        if number == 0:
            places = {(piece.trace.ops[each.op].name, each.input): (each.op, each.input) for each in piece.trace.ranges}
        common = [key for key in rows if key in places]
        if not common or looked_at >= _NEAR:
            break
        looked_at += len(piece.steps)
        gradients = piece.gradients()
        for key in common:
            ranges = gradients[:, rows[key]]
            for at in range(len(piece.steps) - 1, -1, -1):
                smallest, largest = float(ranges[at, _SMALLEST]), float(ranges[at, _LARGEST])
                if not np.isnan(smallest):
                    found.setdefault(places[key], []).append(Ranged(piece.steps[at], smallest, largest))
    return {place: tuple(reversed(listed)) for place, listed in found.items()}


def _rows(trace: Trace) -> dict[tuple[str, int], int]:
    return {(trace.ops[each.op].name, each.input): each.row for each in trace.ranges}
