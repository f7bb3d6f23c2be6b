"""Since when most units of a layer get no gradient, according to the recorded steps of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from tb_gradflow.analyse.over_time.unmoved import Piece
from tb_gradflow.record.schema import GRADIENT_STATISTICS, Trace

_ZEROS = GRADIENT_STATISTICS.index("zero_fraction")

# The number of recorded steps examined.
_NEAR = 64

MOST = 0.75
"""The share of silent units that is reported. At initialization a ReLU is inactive for half of its inputs: for a single
row of a batch, half of the units are silent, and three quarters are unlikely by chance."""

FEWEST_UNITS = 16
"""A layer with fewer units may have so many silent ones by chance."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Steps in which at least `MOST` of a vector's elements got no gradient, up to the one in question.

    Attributes:
        since: The first recorded one of them.
        steps: How many were recorded.
        before: The recorded step before `since`; -1 if there is none, or none that was looked at.
        share_before: The share of elements that got no gradient then.
    """

    since: int
    steps: int
    before: int = -1
    share_before: float = 0.0


def silences_of(backwards: Iterable[Piece]) -> Mapping[int, Silence]:
    """By the index of each variable that is a vector of units and mostly silent. `backwards` are the recorded steps up
    to the one in question, the latest piece first."""
    index: dict[str, int] = {}
    found: dict[str, Silence] = {}
    going: set[str] = set()
    looked_at = 0
    for number, piece in enumerate(backwards):
        rows = _rows(piece.trace)
        if number == 0:
            index = {each.name: place for place, each in enumerate(piece.trace.variables)}
            going = set(rows)
        going &= set(rows)
        if not going or looked_at >= _NEAR:
            break
        looked_at += len(piece.steps)
        gradients = piece.gradients()
        for name in sorted(going):
            # NaN where no gradient was measured: the silence ends there too.
            shares = gradients[:, rows[name], _ZEROS]
            loud = np.flatnonzero(~(shares >= MOST))
            last = int(loud[-1]) if loud.size else -1
            if last + 1 < len(shares):
                steps = found[name].steps if name in found else 0
                found[name] = Silence(piece.steps[last + 1], steps + len(shares) - last - 1)
            if last >= 0:
                going.discard(name)
                if name in found and not np.isnan(shares[last]):
                    silence = found[name]
                    found[name] = Silence(silence.since, silence.steps, piece.steps[last], float(shares[last]))
    return {index[name]: silence for name, silence in found.items()}


def _rows(trace: Trace) -> dict[str, int]:
    """For each trainable vector that has one gradient, its row."""
    rows: dict[int, list[int]] = {}
    for entry in trace.variable_gradients:
        if entry.row is not None and entry.outcome == "value":
            rows.setdefault(entry.variable, []).append(entry.row)
    return {
        trace.variables[place].name: listed[0]
        for place, listed in rows.items()
        if len(listed) == 1 and trace.variables[place].trainable and is_of_units(trace, place)
    }


def is_of_units(trace: Trace, variable: int) -> bool:
    """Whether a variable has one number for each of enough units, as a bias does."""
    shape = trace.variables[variable].shape
    return len(shape) == 1 and shape[0] is not None and shape[0] >= FEWEST_UNITS
