"""Measurements of a step that ran once more, on copies of its variables, with one thing changed."""

from __future__ import annotations

from dataclasses import dataclass

_SPACINGS = 16 * 2.0**-23
"""Rounding of a loss in float32: sums of a batch are equal to a few spacings of numbers."""

_TIMES_NOISE = 10.0


@dataclass(frozen=True, slots=True)
class Influence:
    """A variable was moved, by larger and larger amounts and in several directions, until the loss was another one.

    Attributes:
        target: Index in `Trace.targets`.
        variable: Index in `Trace.variables`.
        size: The largest magnitude among its elements.
        amount: By how much it was moved last: the largest change of an element.
        before: The loss before.
        again: The loss when the step ran a second time with nothing changed: another one if random numbers cannot be
            repeated.
        after: The loss when it was moved.
        still: The largest smaller amount to which the loss did not react; zero if there was none.
    """

    target: int
    variable: int
    size: float
    amount: float
    before: float
    again: float
    after: float
    still: float

    @property
    def reacts(self) -> bool:
        """Whether the loss depends on the variable, beyond rounding and noise."""
        limit = _TIMES_NOISE * abs(self.again - self.before) + _SPACINGS * abs(self.before)
        return abs(self.after - self.before) > limit
