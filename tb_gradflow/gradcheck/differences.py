"""Differences of a function along one direction, at several steps on both sides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tb_gradflow.gradcheck.problem import Array, Point, Problem

# Steps relative to the size of the argument, from the cube root of epsilon: there the errors from rounding, epsilon /
# h, and from curvature, h squared, have the same size for a central difference (Press et al., Numerical Recipes, 5.7).
_DECADES = range(-3, 5)
_LARGEST_STEP = 0.3

# Two estimates that agree, and a neighbour.
_FEWEST_STEPS = 3

# Steps that leave the neighbourhood: where nothing nearer changes a function, it may be made of steps.
_FAR = (1.0, 3.0)

# Two estimates a decade apart that differ by less are the same slope.
_CONSISTENT = 0.05

# Estimates that differ by less, over the larger of both, are one whatever rounding does: a tenth of the finest
# tolerance.
_SAME = 1e-6

# If no two estimates agree within rounding, rounding is larger than the value suggests, and this many times as much is
# allowed.
_ALLOWED = (1.0, 10.0, 100.0)

# The bound on rounding is about four times its typical size: sixteen operations rarely all err in the same direction,
# and random errors add up to the square root.
_HIDDEN = 4.0

# Three quarters of the difference between the sides is more than the error of a central difference, as long as the
# function curves no more than an exponential over three times the step in which it grows e-fold.
_BEND = 4.0

# The largest of three measured errors is about a standard deviation; three of these contain almost all errors.
_SCATTER = 3.0

# Rounding and a jump set the sides ten times further apart a decade down; a root of the distance, the commonest cusp,
# three times.
_CUSP = 8.0

# Decades below the smallest step, twice if necessary: an element of 1e-8 next to one of 1 is then moved in proportion
# to itself.
_SMALLER = 4

# Halvings of a step. A continuous function keeps less than a millionth of the change then.
_BISECTIONS = 24

# If a larger share of the change remains then, it is a jump: this limit is far above that millionth, and far below a
# single step of a step function, which has several per decade of the argument.
_LEFT = 1e-4

# The number of places on the path to a far step that are examined for a jump; the largest changes between them are
# bisected. If a change is a jump, most of it remains.
_SAMPLES = 24
_SUSPECTED = 3
_REMAINS = 0.05

# Rounding of a value that many operations have computed, in units of its epsilon.
_NOISE = 16.0


def steps_for(resolution: float) -> tuple[float, ...]:
    """Relative steps to try, increasing, for arithmetic with this machine epsilon."""
    best = resolution ** (1 / 3)
    found = [best * 10.0**decade for decade in _DECADES]
    steps = (*(step for step in found if step < _LARGEST_STEP / 2), _LARGEST_STEP)
    if sum(step >= resolution for step in steps) >= _FEWEST_STEPS:
        return steps
    # Smaller ones do not move a number at all in bfloat16.
    return tuple(np.geomspace(resolution, _LARGEST_STEP, _FEWEST_STEPS + 1).tolist())


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
    """The values of the function along one direction.

    Attributes:
        probe: The direction.
        steps: Relative, increasing.
        middle: The function at the point.
        above: The function a step ahead, one for each step.
        below: The function a step back.
        ahead: How far each step ahead really went, in units of the direction.
        back: The same for the steps back.
        resolution: Machine epsilon of the function's arithmetic.
        leap: How far the function jumps, between steps that do not change it and those that do.
        inner: Rounding inside the function, where it was seen to exceed that of its value.
    """

    probe: Probe
    steps: tuple[float, ...]
    middle: float
    above: Array
    below: Array
    ahead: Array
    back: Array
    resolution: float
    leap: float = 0.0
    inner: float = 0.0

    @cached_property
    def central(self) -> Array:
        """Central differences: NaN where the function is not finite. Each side is weighted by the distance of the other
        one, so that curvature cancels even if the distances differ, as far as precision allows."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return (self.right * self.back + self.left * self.ahead) / (self.ahead + self.back)

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
    def rounding(self) -> Array:
        """The error from rounding alone in a difference of two values, for each step: from the values there, which may
        be much smaller than those farther away, and from measurement."""
        values = np.abs(np.stack([self.above, self.below, np.full(len(self.steps), self.middle)]))
        largest: Array = np.max(np.where(np.isfinite(values), values, 0.0), axis=0)
        bound: Array = np.maximum(_NOISE * self.resolution * largest, max(self._scatter, self.inner))
        return bound

    @cached_property
    def _scatter(self) -> float:
        """Rounding inside the function, which may exceed that of its value: the difference between the mean of both
        sides and the middle at the smallest steps. Curvature contributes less there, and a kink ten times as much at
        the next step; rounding stays the same."""
        off = np.abs(self.above + self.below - 2 * self.middle)[:3]
        if len(off) < 3 or not np.all(np.isfinite(off)) or self.is_jump:
            return 0.0
        # An error of more than half of the digits is not rounding: the function oscillates between the steps.
        most = self.resolution**0.5 * max(abs(self.middle), float(np.max(np.abs(self.above[:3]))))
        return _SCATTER * float(np.max(off)) if off[2] <= 3 * max(off[0], off[1]) and np.max(off) <= most else 0.0

    @cached_property
    def noise(self) -> float:
        """The same at the smallest step."""
        return float(self.rounding[0])

    @cached_property
    def _blur(self) -> Array:
        """How far rounding may put each central difference off; NaN for those that left the neighbourhood."""
        with np.errstate(invalid="ignore", divide="ignore"):
            blur: Array = self.rounding / (self.ahead + self.back)
        blur[np.array(self.steps) > _LARGEST_STEP] = np.nan
        return blur

    @cached_property
    def best(self) -> int:
        """The step whose central difference is the surest."""
        return _surest(self.central, self._blur)

    @property
    def is_unsettled(self) -> bool:
        """Whether no step agrees with the smaller ones."""
        return _surest(self.central, self._blur, _ALLOWED[:1]) == 0

    @property
    def slope(self) -> float:
        """The central difference at the best step."""
        return float(self.central[self.best])

    @cached_property
    def uncertainty(self) -> float:
        """The possible error of the central difference at the best step: its difference from its neighbour, or the
        error from rounding. If rounding hides the slope at the neighbours, the two sides show the curvature."""
        place, rounding = self.best, float(self._blur[self.best]) / _HIDDEN
        beside = [each for each in (place - 1, place + 1) if 0 <= each < len(self.steps)]
        if not any(self._blur[each] / _HIDDEN <= max(abs(self.slope), self.reach) / 2 for each in beside):
            return max(abs(float(self.right[place] - self.left[place])) / _BEND, rounding)
        return max(_change(self.central, place), rounding)

    def allows(self, slope: float, margin: float, telling: float) -> bool:
        """Whether the small steps agree on a slope within rounding, up to a step at which rounding is less than
        `telling`; beyond it the function may curve."""
        known = np.isfinite(self.central) & np.isfinite(self._blur)
        for off, blur in zip(np.abs(self.central - slope)[known], self._blur[known], strict=True):
            if off > blur + margin:
                return False
            if blur <= telling:
                return True
        return False

    @property
    def is_finite(self) -> bool:
        """Whether at least three adjacent steps have finite values on both sides."""
        finite = np.isfinite(self.central)
        return any(finite[place : place + 3].all() for place in range(len(self.steps) - 2))

    @cached_property
    def is_smooth(self) -> bool:
        """Whether the slope is the same at steps a decade apart, and on both sides as the steps shrink."""
        if not self.is_finite or self.is_jump or self.is_kink:
            return False
        return self.uncertainty <= max(_CONSISTENT * abs(self.slope), float(self._blur[self.best]), _SAME * self.reach)

    @cached_property
    def is_constant(self) -> bool:
        """Whether small steps do not change the function at all, to the last bit."""
        small = slice(0, len(self.steps) // 2)
        values = np.array([self.middle, *self.above[small], *self.below[small]])
        return bool(np.all(values == self.middle))

    @cached_property
    def reach(self) -> float:
        """The largest slope at any step that exceeds rounding: how strongly the function depends on the argument."""
        slopes = np.where(
            np.maximum(np.abs(self.above - self.middle), np.abs(self.middle - self.below)) > self.rounding,
            np.maximum(np.abs(self.right), np.abs(self.left)),
            0.0,
        )
        return float(np.max(slopes[np.isfinite(slopes)], initial=0.0))

    @property
    def is_still(self) -> bool:
        """Whether the smallest step does not change the function, to the last bit."""
        return bool(self.above[0] == self.middle == self.below[0])

    def denies(self, slope: float) -> bool:
        """Whether some small step leaves the function where it is, to rounding, though by this slope it would change by
        more than rounding could hide."""
        seen = np.maximum(np.abs(self.above - self.middle), np.abs(self.middle - self.below))
        small = slice(0, len(self.steps) // 2 + 1)
        telling = abs(slope) * np.minimum(self.ahead, self.back)[small] > 4 * self.rounding[small]
        return bool(np.any(telling & (seen[small] <= self.rounding[small])))

    @property
    def is_stepped(self) -> bool:
        """Whether the function is the same at small steps, and jumps before the larger ones, by more than rounding."""
        return self.leap > 2 * self.noise

    @cached_property
    def varies(self) -> bool:
        """Whether some step changes the function by more than rounding does."""
        changes = np.maximum(np.abs(self.above - self.middle), np.abs(self.below - self.middle))
        return bool(np.any(changes[np.isfinite(changes)] > self.rounding[np.isfinite(changes)]))

    @cached_property
    def is_jump(self) -> bool:
        """Whether the difference of both sides does not shrink with the step."""
        small = np.abs(self.above - self.below)[: max(3, len(self.steps) // 2)]
        values = np.abs([self.middle, *self.above[:3], *self.below[:3]])
        if not np.all(np.isfinite(small)) or np.min(small) <= _NOISE * self.resolution * float(np.max(values)):
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
        shorter = np.minimum(self.ahead, self.back)
        known = np.isfinite(apart) & (apart > 4 * self.rounding / shorter)
        places = np.flatnonzero(known)
        if len(places) < 3:
            return False
        first = apart[places[:3]]
        slopes = np.maximum(np.abs(self.right), np.abs(self.left))[places[:3]]
        # Curvature sets the sides apart in proportion to the step: ten times as much a decade further on. A kink leaves
        # them as far apart, and a cusp, as that of a root at zero, further apart where the step is smaller.
        shares = first[1:] / first[:-1]
        return bool(np.all((shares < 2.5) & (shares > 1 / _CUSP)) and np.all(first > _CONSISTENT * slopes / 5))

    @property
    def sides(self) -> tuple[float, float]:
        """The slopes on the left and on the right, each at its surest step."""
        left, right = (self._blur * (self.ahead + self.back) / size for size in (self.back, self.ahead))
        return float(self.left[_surest(self.left, left)]), float(self.right[_surest(self.right, right)])

    def at(self, place: int) -> float:
        """The central difference at one of the steps."""
        return float(self.central[place])


def differences(problem: Problem, place: int, probe: Probe, middle: float, steps: Sequence[float]) -> Differences:
    """The function along one direction at each of `steps`; at smaller ones if these do not agree on a slope; and at
    large ones if none of these changes it. If small steps do not change it but larger ones do, the range in between is
    searched for a jump."""
    found = _differences(problem, place, probe, middle, steps)
    if found.is_constant and not found.varies:
        found = _differences(problem, place, probe, middle, (*steps, *_FAR))
    for _ in range(2):
        if not (found.is_jump or found.is_kink or found.is_unsettled) or found.is_constant:
            break
        smaller = _smaller(problem.arguments[place].point, probe, found.resolution, found.steps[0])
        if not smaller:
            break
        found = _differences(problem, place, probe, middle, (*smaller, *found.steps))
    if not found.is_still or not found.varies:
        return found
    leap = _leap(problem, place, found)
    if leap <= 2 * found.noise:
        return found
    # A jump no larger than the rounding of numbers that the function works with is rounding.
    sizes = np.abs([*problem.arguments[place].point.astype(np.float64).ravel(), middle, 1.0])
    inside = _NOISE * found.resolution * float(np.max(sizes[np.isfinite(sizes)]))
    return replace(found, inner=2 * leap) if leap <= inside else replace(found, leap=leap)


def _smaller(point: Point, probe: Probe, resolution: float, first: float) -> list[float]:
    """Steps below the first, which an element that is small compared with the others may need. None is below the
    resolution of the element."""
    moved = probe.direction != 0
    sizes = np.abs(point.astype(np.float64)[moved]) / np.abs(probe.direction[moved])
    least = 16 * resolution * float(np.max(sizes, initial=0.0))
    return sorted(step for step in (first / 10.0**decade for decade in range(1, _SMALLER + 1)) if step > least)


def _leap(problem: Problem, place: int, found: Differences) -> float:
    """The height of the jump between the largest step that does not change the function and the next, by bisection:
    almost zero if it is only curved there."""
    largest = 0.0
    for values, sign in ((found.above, 1.0), (found.below, -1.0)):
        changed = np.flatnonzero(np.isfinite(values) & (np.abs(values - found.middle) > found.rounding))
        if not len(changed):
            continue
        near, far = (found.steps[changed[0] - 1] if changed[0] else 0.0), found.steps[changed[0]]
        before, after = found.middle, float(values[changed[0]])
        for _ in range(_BISECTIONS):
            between = (near + far) / 2
            value, _ = problem.at(place, sign * between * found.probe.direction)
            if not np.isfinite(value):
                break
            # The half in which the function changes more.
            if abs(value - before) > abs(after - value):
                far, after = between, value
            else:
                near, before = between, value
        if abs(after - before) > _LEFT * abs(float(values[changed[0]]) - found.middle):
            largest = max(largest, abs(after - before))
    return largest


def jumps_far_from(problem: Problem, place: int, found: Differences) -> bool:
    """Whether the function jumps somewhere along a direction, up to three times the size of the argument."""
    for sign in (1.0, -1.0):

        def value(step: float, sign: float = sign) -> float:
            return problem.at(place, sign * step * found.probe.direction)[0]

        steps = np.linspace(0.0, _FAR[-1], _SAMPLES + 1)
        values = [found.middle, *(value(step) for step in steps[1:])]
        size = float(np.ptp(values)) if np.all(np.isfinite(values)) else 0.0
        noise = _NOISE * found.resolution * float(np.max(np.abs(values))) if size else 0.0
        # A jump is more than the function changes to both sides of it.
        changes = np.abs(np.diff(values))
        for at in np.argsort(-changes)[:_SUSPECTED]:
            if changes[at] > 4 * noise and _left_by_bisection(value, steps[at : at + 2], values[at : at + 2], noise):
                return True
    return False


def _left_by_bisection(value: Callable[[float], float], steps: Array, ends: Sequence[float], noise: float) -> bool:
    """Whether a change between two steps remains when bisection has brought them together."""
    (near, far), (before, after) = steps, ends
    whole = abs(after - before)
    for _ in range(_BISECTIONS):
        between = (near + far) / 2
        here = value(between)
        if not np.isfinite(here):
            return False
        if abs(here - before) > abs(after - here):
            far, after = between, here
        else:
            near, before = between, here
    return abs(after - before) > max(_REMAINS * whole, 2 * noise)


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
    """The difference of an estimate from that at the next smaller step, or at the next larger one if that is closer."""
    beside = [estimates[each] for each in (place - 1, place + 1) if 0 <= each < len(estimates)]
    changes = np.abs(np.array(beside) - estimates[place])
    return float(np.min(changes[np.isfinite(changes)], initial=np.inf))


def _surest(estimates: Array, blur: Array, allowance: Sequence[float] = _ALLOWED) -> int:
    """The most accurate of the steps whose estimates agree with those at all smaller steps within rounding (Lepski's
    rule: with larger steps the error from rounding shrinks and that from curvature grows)."""
    known = np.flatnonzero(np.isfinite(estimates) & np.isfinite(blur))
    if not len(known):
        return len(estimates) - 1
    for allowed in allowance:
        best, least = int(known[0]), np.inf
        for number, place in enumerate(known):
            before = known[:number]
            apart = np.abs(estimates[before] - estimates[place])
            same = _SAME * np.maximum(np.abs(estimates[before]), abs(estimates[place]))
            if np.any(apart > allowed * (blur[before] + blur[place]) + same):
                break
            off = max(apart[-1] if number else np.inf, blur[place] / _HIDDEN)
            if off < least:
                best, least = int(place), off
        if np.isfinite(least):
            return best
    return int(known[0])
