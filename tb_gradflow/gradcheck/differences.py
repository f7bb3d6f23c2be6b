"""Differences of a function along one direction, at several steps on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_gradflow.gradcheck.problem import Array, Problem

# Steps, as shares of the size of what is moved, from the cube root of epsilon: there rounding, epsilon / h, and
# curvature, h squared, are of one size for a central difference (Press et al., Numerical Recipes, 5.7).
_DECADES = range(-3, 5)
_LARGEST_STEP = 0.3

# Steps that leave the neighbourhood: where nothing nearer changes a function, it may be made of steps.
_FAR = (1.0, 3.0)

# Two estimates a decade apart that differ by less are the same slope.
_CONSISTENT = 0.05

# Rounding of a value that many operations have made, in units of its epsilon.
_NOISE = 16.0


def steps_for(resolution: float) -> tuple[float, ...]:
    """Relative steps to try, increasing, for arithmetic with this machine epsilon."""
    best = resolution ** (1 / 3)
    found = [best * 10.0**decade for decade in _DECADES]
    return (*(step for step in found if step < _LARGEST_STEP / 2), _LARGEST_STEP)


@dataclass(frozen=True, slots=True, eq=False)
class Probe:
    """A direction in which an argument is moved.

    Attributes:
        direction: As large in each element as the numbers there, or zero.
        index: The one element that it moves; `None` if it moves many.
    """

    direction: Array
    index: int | None


@dataclass(frozen=True, eq=False)
class Differences:
    """What the function does along one direction.

    Attributes:
        probe: The direction.
        steps: Relative, increasing.
        middle: The function at the point.
        above: The function a step ahead, one for each step.
        below: The function a step back.
        ahead: How far each step ahead really went, in units of the direction.
        back: The same for the steps back.
        resolution: Machine epsilon of the function's arithmetic.
    """

    probe: Probe
    steps: tuple[float, ...]
    middle: float
    above: Array
    below: Array
    ahead: Array
    back: Array
    resolution: float

    @cached_property
    def central(self) -> Array:
        """Central differences: NaN where the function is not finite."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return (self.above - self.below) / (self.ahead + self.back)

    @cached_property
    def right(self) -> Array:
        """One-sided differences ahead."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return (self.above - self.middle) / self.ahead

    @cached_property
    def left(self) -> Array:
        """One-sided differences back."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return (self.middle - self.below) / self.back

    @cached_property
    def noise(self) -> float:
        """What rounding alone makes of a difference of two values."""
        values = np.abs(np.array([self.middle, *self.above, *self.below]))
        return _NOISE * self.resolution * float(np.max(values[np.isfinite(values)], initial=0.0))

    @cached_property
    def best(self) -> int:
        """The step whose central difference is nearest to those at the steps beside it."""
        return _steadiest(self.central)

    @property
    def slope(self) -> float:
        """The central difference at the best step."""
        return float(self.central[self.best])

    @cached_property
    def uncertainty(self) -> float:
        """How far the central difference at the best step may be off: what it differs by from its neighbour, or what
        rounding does to it."""
        rounding = self.noise / float(self.ahead[self.best] + self.back[self.best])
        return max(_change(self.central, self.best), rounding / _NOISE)

    @property
    def is_finite(self) -> bool:
        """Whether at least three steps beside each other have finite values on both sides."""
        finite = np.isfinite(self.central)
        return any(finite[place : place + 3].all() for place in range(len(self.steps) - 2))

    @cached_property
    def is_smooth(self) -> bool:
        """Whether the slope is the same at steps a decade apart, and on both sides as the steps shrink."""
        if not self.is_finite or self.is_constant or self.is_jump or self.is_kink:
            return False
        change = _change(self.central, self.best)
        rounding = self.noise / float(self.ahead[self.best] + self.back[self.best])
        return change <= max(_CONSISTENT * abs(self.slope), rounding)

    @cached_property
    def is_constant(self) -> bool:
        """Whether small steps do not change the function at all, to the last bit."""
        small = slice(0, len(self.steps) // 2)
        values = np.array([self.middle, *self.above[small], *self.below[small]])
        return bool(np.all(values == self.middle))

    @cached_property
    def is_stepped(self) -> bool:
        """Whether small steps do not change the function, though by the slope that larger ones tell they would by more
        than rounding could hide."""
        size = np.minimum(self.ahead, self.back)
        seen = np.maximum(np.abs(self.above - self.middle), np.abs(self.middle - self.below))
        small = len(self.steps) // 2 + 1
        slopes = np.abs(self.central[small:])
        slope = float(np.max(slopes[np.isfinite(slopes)], initial=0.0))
        telling = slope * size[:small] > 4 * self.noise
        return bool(np.any(telling) and np.all(seen[:small][telling] <= self.noise))

    @cached_property
    def varies(self) -> bool:
        """Whether some step changes the function by more than rounding does."""
        values = np.array([*self.above, *self.below])
        return bool(np.any(np.abs(values[np.isfinite(values)] - self.middle) > self.noise))

    @cached_property
    def is_jump(self) -> bool:
        """Whether the difference of both sides does not shrink with the step."""
        small = np.abs(self.above - self.below)[: max(3, len(self.steps) // 2)]
        if not np.all(np.isfinite(small)) or np.min(small) <= self.noise:
            return False
        return bool(np.max(small) < 2 * np.min(small))

    @property
    def jump(self) -> float:
        """How far the function jumps at the point."""
        return float(self.above[0] - self.below[0])

    @cached_property
    def is_kink(self) -> bool:
        """Whether the slopes of both sides stay apart as the steps shrink."""
        apart = np.abs(self.right - self.left)
        rounding = self.noise / np.minimum(self.ahead, self.back)
        known = np.isfinite(apart) & (apart > 4 * rounding)
        places = np.flatnonzero(known)
        if len(places) < 3:
            return False
        first = apart[places[:3]]
        slopes = np.maximum(np.abs(self.right), np.abs(self.left))[places[:3]]
        # Curvature sets the sides apart in proportion to the step: ten times as much a decade further on.
        return bool(np.max(first) < 2.5 * np.min(first) and np.all(first > _CONSISTENT * slopes / 5))

    @property
    def sides(self) -> tuple[float, float]:
        """The slopes on the left and on the right, each at its steadiest step."""
        return float(self.left[_steadiest(self.left)]), float(self.right[_steadiest(self.right)])

    def at(self, place: int) -> float:
        """The central difference at one of the steps."""
        return float(self.central[place])


def differences(problem: Problem, place: int, probe: Probe, middle: float, steps: Sequence[float]) -> Differences:
    """The function along one direction at each of `steps`, and at large ones if none of these changes it."""
    found = _differences(problem, place, probe, middle, steps)
    if found.is_constant and not found.varies:
        return _differences(problem, place, probe, middle, (*steps, *_FAR))
    return found


def _differences(problem: Problem, place: int, probe: Probe, middle: float, steps: Sequence[float]) -> Differences:
    length = float(np.sum(probe.direction**2))
    sides: list[list[tuple[float, float]]] = [[], []]
    for step in steps:
        for side, sign in zip(sides, (1.0, -1.0), strict=True):
            value, moved = problem.at(place, sign * step * probe.direction)
            went = sign * float(np.sum(moved * probe.direction)) / length if length else 0.0
            side.append((value, went if went > 0 else float("nan")))
    (above, ahead), (below, back) = (map(np.array, zip(*side, strict=True)) for side in sides)
    resolution = problem.arguments[place].resolution
    return Differences(probe, tuple(steps), middle, above, below, ahead, back, resolution)


def _change(estimates: Array, place: int) -> float:
    """What an estimate differs by from that at the next smaller or larger step, whichever is nearer to it."""
    beside = [estimates[each] for each in (place - 1, place + 1) if 0 <= each < len(estimates)]
    changes = np.abs(np.array(beside) - estimates[place])
    return float(np.min(changes[np.isfinite(changes)], initial=np.inf))


def _steadiest(estimates: Array) -> int:
    changes = np.abs(np.diff(estimates))
    changes = np.where(np.isfinite(changes), changes, np.inf)
    if not np.isfinite(changes).any():
        return len(estimates) - 1
    # Of the two that agree best the one that also agrees better with the estimate on its other side.
    place = int(np.argmin(changes))
    before = changes[place - 1] if place else np.inf
    after = changes[place + 1] if place + 1 < len(changes) else np.inf
    return place if before <= after else place + 1
