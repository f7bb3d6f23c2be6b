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
        self._first: Array | None = None
        self.limits: Array = np.full(count, NO_LIMIT)
        self._level: Array = np.zeros(count)

    def add(self, rows: npt.ArrayLike) -> None:
        """Steps have had these numbers, oldest first; what is not finite says nothing of what is usual."""
        known = np.asarray(rows, np.float64).reshape(-1, len(self.limits))
        known = known[np.all(np.isfinite(known), axis=1)]
        self._logs = np.concatenate([self._logs, np.log(np.maximum(np.abs(known), _TINY))])[-REMEMBERED:]
        if len(self._logs) >= FEWEST:
            self._set_limits()

    def _set_limits(self) -> None:
        self._level = np.median(self._logs[-LEVEL:], axis=0)
        if self._first is None:
            self._first = np.maximum(np.median(self._logs[: LEVEL // 2], axis=0), self._level)
        logs = np.max(
            [
                self._level + self._end_of_tail(),
                self._level + np.log(FACTOR),
                np.max(self._logs, axis=0) + np.log(_ABOVE_ALL),
                self._first + np.log(_OF_FIRST),
            ],
            axis=0,
        )
        with np.errstate(over="ignore"):
            self.limits = np.where(self._level > np.log(_TINY) + 1.0, np.exp(logs), NO_LIMIT)

    def _end_of_tail(self) -> Array:
        """How far above the median a usual step may be."""
        parts = np.array_split(self._logs, len(self._logs) // LEVEL)
        # Compared with the steps around it: a loss falls.
        distances = np.sort(np.concatenate([part - np.median(part, axis=0) for part in parts]), axis=0)[::-1]
        count = max(3, int(_OF_TAIL * len(distances)))
        mean = np.mean(distances[:count], axis=0) - distances[count]
        # The mean of so few is not known better.
        mean *= 1 + 2 / np.sqrt(count)
        end: Array = distances[count] + mean * np.log(count / (len(distances) * RARE))
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
        self._logs = self._logs[:0]
        self.limits = np.full(len(self.limits), NO_LIMIT)
