"""What is usual of the numbers that the monitor sees in every step: a loss, and the norm of a gradient.

Pure arithmetic: the monitor compares each step with the limits, in the step; this makes the limits, every few steps,
from what the steps before have left.

A step is far above what is usual if it is so by each of these measures, on a logarithmic scale, since losses and norms
of gradients have tails and drift by factors: a factor above the median that no healthy step of a quiet training shows;
above all that the last few hundred steps have had; and beyond where the tail of these steps ends. That is estimated
from the largest of them, as Hill does (Annals of Statistics 3, 1975): their mean distance, on that scale, from the
largest one that is not among them. A training whose loss jumps around has wide limits, or none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

REMEMBERED = 512
"""Number of steps that are looked back on."""

LEVEL = 64
"""Number of steps whose median is the usual value: short enough to follow a schedule."""

FEWEST = 96
"""With fewer steps nothing is usual: a training begins with its largest losses and gradients."""

_OF_TAIL = 1 / 32
"""The part of the steps that is the tail."""

_FEWEST_OF_TAIL = 6

RARE = 1e-7
"""How likely a usual step is to be above the limit."""

FACTOR = 10.0
"""By which it has to be above the median too."""

_ABOVE_ALL = 2.0
"""By which it has to be above all that is remembered."""

_OF_FIRST = 0.03
"""A loss that has become small is followed down to this part of what it was in the beginning: where all rows are
learnt, one that is not is a hundred times the median, and harmless."""

_TINY = 1e-30

_LOG_FACTOR, _LOG_ABOVE_ALL, _LOG_OF_FIRST, _LOG_TINY = (
    float(np.log(each)) for each in (FACTOR, _ABOVE_ALL, _OF_FIRST, _TINY)
)

_LOG_LARGEST = 40.0

NO_LIMIT = float("inf")


@dataclass(frozen=True, slots=True)
class Excess:
    """A number of a step that is far above what is usual.

    Attributes:
        series: Which number.
        values: All of them.
        limit: Above which this one is not usual.
        usual: The medians of the steps before.
        highest: The largest value of this one in them.
        steps: Number of steps that this is known from.
        recent: The values of the numbers in the last steps before it, oldest first.
    """

    series: int
    values: tuple[float, ...]
    limit: float
    usual: tuple[float, ...]
    highest: float
    steps: int
    recent: tuple[tuple[float, ...], ...]


class Usual:
    """See above.

    Args:
        count: How many numbers a step has.

    Attributes:
        limits: Above which a step's numbers are not usual.
    """

    def __init__(self, count: int) -> None:
        self._logs: Array = np.empty((0, count))
        self._distances: Array = np.empty((0, count))
        self._first: Array | None = None
        self._level: Array = np.zeros(count)
        self.limits: Array = np.full(count, NO_LIMIT)

    @property
    def steps(self) -> int:
        """Of how many steps it knows."""
        return len(self._logs)

    def add(self, rows: npt.ArrayLike) -> None:
        """Steps have had these numbers, oldest first; what is not finite says nothing of what is usual."""
        known = np.asarray(rows, np.float64).reshape(-1, len(self.limits))
        known = known[np.isfinite(known).all(axis=1)]
        if not len(known):
            return
        logs = np.log(np.maximum(np.abs(known), _TINY))
        self._logs = np.concatenate([self._logs, logs])[-REMEMBERED:]
        self._level = _median(self._logs[-LEVEL:])
        # Compared with the steps around them: a loss falls. The first ones say nothing of later.
        distances = logs - _median(logs)
        if self._first is None:
            self._first, distances = self._level, distances[LEVEL // 2 :]
        self._distances = np.concatenate([self._distances, distances])[-REMEMBERED:]
        if len(self._logs) >= FEWEST and len(self._distances) >= FEWEST // 2:
            self._set_limits()

    def _set_limits(self) -> None:
        assert self._first is not None
        logs = np.maximum(self._level + np.maximum(self._end_of_tail(), _LOG_FACTOR), self._first + _LOG_OF_FIRST)
        logs = np.maximum(logs, self._logs.max(axis=0) + _LOG_ABOVE_ALL)
        # What is above this cannot be told from what is not finite.
        self.limits = np.where(self._level > _LOG_TINY + 1.0, np.exp(np.minimum(logs, _LOG_LARGEST)), NO_LIMIT)

    def _end_of_tail(self) -> Array:
        """How far above the median a usual step may be."""
        steps = len(self._distances)
        count = max(_FEWEST_OF_TAIL, int(_OF_TAIL * steps))
        largest = np.sort(self._distances, axis=0)[steps - count - 1 :]
        mean = largest[1:].mean(axis=0) - largest[0]
        # The mean of so few is not known better.
        mean *= 1 + 2 / count**0.5
        end: Array = largest[0] + mean * float(np.log(count / (steps * RARE)))
        return end

    def excess(self, values: Sequence[float], recent: Sequence[Sequence[float]] = ()) -> Excess | None:
        """That of a step with these numbers, the first that is too large; `None` if none is. `recent` are those of the
        steps before it."""
        for series, (value, limit) in enumerate(zip(values, self.limits, strict=True)):
            if value > limit:
                usual = tuple(float(each) for each in np.exp(self._level))
                before = tuple(tuple(float(each) for each in row) for row in recent)
                all_values = tuple(float(each) for each in values)
                highest = float(np.exp(np.max(self._logs[:, series])))
                return Excess(series, all_values, float(limit), usual, highest, len(self._logs), before)
        return None

    def rest(self) -> None:
        """For as many steps as it takes to know what is usual now, nothing is called unusual."""
        self._logs, self._distances = self._logs[:0], self._distances[:0]
        self.limits = np.full(len(self.limits), NO_LIMIT)


def _median(rows: Array) -> Array:
    """The upper one of an even number. `np.median` takes ten times as long for so few."""
    middle: Array = np.sort(rows, axis=0)[len(rows) // 2]
    return middle
