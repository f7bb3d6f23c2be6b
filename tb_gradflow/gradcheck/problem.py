"""The problem to check: a function of arrays, a point, and a gradient at that point."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_EVALUATIONS = 10_000
"""Limit for one check. A network with a hundred variables takes a few thousand."""

MOST_SECONDS = 180.0
"""Limit on the time that one check spends in the function, approximately."""

Array = npt.NDArray[np.float64]

Point = npt.NDArray[np.floating[Any]]


class OutOfBudget(Exception):
    """This part of a check has used up its evaluations or its time."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One array with respect to which the function is differentiated.

    Attributes:
        name: Its place among the arguments: `0`, or `1['kernel']` inside one.
        point: Its value, in the precision that the function gets.
        gradient: The gradient to check; `None` if there is none.
        resolution: Machine epsilon of the function's arithmetic.
        rounds: Whether the function is known to round, compare or choose on the path, and to have a
            custom gradient instead of the derivative there.
        missing: Why there is no gradient, in a sentence; empty if that is not known.
        replaced: The user's gradients that replace a derivative in this one, in words; empty if none are known.
    """

    name: str
    point: Point
    gradient: Array | None
    resolution: float
    rounds: bool = False
    missing: str = ""
    replaced: str = ""


@dataclass(slots=True)
class Problem:
    """A function of several arrays, with fixed random numbers.

    Attributes:
        value: The function: a finite number, NaN or infinity. It may raise where it is not defined.
        arguments: Its arguments.
        notes: One sentence for each argument that is not compared.
        evaluations: How often it was called.
        seconds: How long these calls took.
        latest: How long the latest one took.
    """

    value: Callable[[Sequence[Point]], float]
    arguments: Sequence[Argument]
    notes: tuple[str, ...] = ()
    evaluations: int = field(default=0, init=False)
    seconds: float = field(default=0.0, init=False)
    latest: float = field(default=0.0, init=False)
    _most_evaluations: float = field(default=float("inf"), init=False)
    _most_seconds: float = field(default=float("inf"), init=False)

    def share(self, parts: int) -> None:
        """From now on, calls may use one of this many equal parts of what is left; then they raise OutOfBudget."""
        self._most_evaluations = self.evaluations + (MOST_EVALUATIONS - self.evaluations) / parts
        self._most_seconds = self.seconds + (MOST_SECONDS - self.seconds) / parts

    @property
    def affordable(self) -> float:
        """The number of evaluations left for this part, if each takes as long as the latest one."""
        by_time = (self._most_seconds - self.seconds) / self.latest if self.latest else float("inf")
        return min(self._most_evaluations - self.evaluations, by_time)

    def at(self, place: int, move: Array) -> tuple[float, Array]:
        """The function with one argument moved, and by how much that really was: numbers are not infinitely dense."""
        points = [argument.point for argument in self.arguments]
        here = points[place]
        points[place] = (here.astype(np.float64) + move).astype(here.dtype)
        return self._moved(points), points[place].astype(np.float64) - here.astype(np.float64)

    def moved(self, moves: Sequence[Array]) -> float:
        """The function with all arguments moved."""
        pairs = zip(self.arguments, moves, strict=True)
        return self._moved([(each.point.astype(np.float64) + move).astype(each.point.dtype) for each, move in pairs])

    def here(self) -> float:
        """The function at the point itself."""
        return self._call([argument.point for argument in self.arguments])

    def _moved(self, points: Sequence[Point]) -> float:
        """The function away from the point, where it may be undefined: NaN if it raises. A solver may raise for a
        singular matrix, or a model for a negative mass. At the point itself, every exception is raised."""
        try:
            return self._call(points)
        except OutOfBudget:
            raise
        except Exception:
            return float("nan")

    def _call(self, points: Sequence[Point]) -> float:
        if self.evaluations >= self._most_evaluations or self.seconds >= self._most_seconds:
            raise OutOfBudget
        self.evaluations += 1
        began = time.perf_counter()
        try:
            return float(self.value(points))
        finally:
            self.latest = time.perf_counter() - began
            self.seconds += self.latest


def not_compared(name: str) -> str:
    """The note about an argument that the user's gradient leaves out."""
    return f"Argument {name} was not compared: your gradient returns nothing for it."
