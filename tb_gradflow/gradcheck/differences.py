"""Differences of a function along one direction, at several steps on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tb_gradflow.gradcheck.problem import Array, Point, Problem

# Steps, as shares of the size of what is moved, from the cube root of epsilon: there rounding, epsilon / h, and
# curvature, h squared, are of one size for a central difference (Press et al., Numerical Recipes, 5.7).
_DECADES = range(-3, 5)
_LARGEST_STEP = 0.3

# Two that agree and one beside them.
_FEWEST_STEPS = 3

# Steps that leave the neighbourhood: where nothing nearer changes a function, it may be made of steps.
_FAR = (1.0, 3.0)

# Two estimates a decade apart that differ by less are the same slope.
_CONSISTENT = 0.05

# Estimates that differ by less, over the larger of both, are one whatever rounding does: a tenth of the finest
# tolerance.
_SAME = 1e-6

# Where no two estimates agree within rounding, rounding is larger than the value tells, and so many times that is
# allowed.
_ALLOWED = (1.0, 10.0, 100.0)

# The bound on rounding is some four times what it mostly is: sixteen operations that all err to the same side are rare,
# and errors at random add up to the root of that.
_HIDDEN = 4.0

# Three times a quarter of what the sides differ by is more than a central difference errs where the function bends as
# much as an exponential over three times the step in which it grows e-fold.
_BEND = 4.0

# Of three measured errors the largest is about a standard deviation; three of these hold nearly all.
_SCATTER = 3.0

# Rounding and a jump set the sides ten times further apart a decade down; a root of the distance, the commonest cusp,
# three times.
_CUSP = 8.0

# Decades below the smallest step, twice if need be: an element of 1e-8 beside one of 1 is moved in proportion to itself
# then.
_SMALLER = 4

# Halvings of a step. A continuous function keeps less than a millionth of the change then.
_BISECTIONS = 24

# A larger share of the change that is left then is a jump: it lies far above that millionth, and far below a step of
# the function's, of which a decade of the argument holds some.
_LEFT = 1e-4

# Rounding of a value that many operations have made, in units of its epsilon.
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
        """Central differences: NaN where the function is not finite. Both sides are weighed by how far the other one
        went, so that curvature cancels where they are not equal, as far as numbers reach."""
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
        """What rounding alone makes of a difference of two values, for each step: by the values there, which may be
        smaller by far than those further on, and by what was measured."""
        values = np.abs(np.stack([self.above, self.below, np.full(len(self.steps), self.middle)]))
        largest: Array = np.max(np.where(np.isfinite(values), values, 0.0), axis=0)
        bound: Array = np.maximum(_NOISE * self.resolution * largest, max(self._scatter, self.inner))
        return bound

    @cached_property
    def _scatter(self) -> float:
        """Rounding inside the function, which may exceed that of its value: what the mean of both sides differs by
        from the middle at the smallest steps. Curvature makes less of it there, and a kink ten times as much at the
        next step; rounding stays."""
        off = np.abs(self.above + self.below - 2 * self.middle)[:3]
        if len(off) < 3 or not np.all(np.isfinite(off)) or self.is_jump:
            return 0.0
        # More than half of the digits is no rounding: the function goes up and down between the steps.
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
        """How far the central difference at the best step may be off: what it differs by from its neighbour, or what
        rounding does to it. Where rounding hides the slope at the neighbours, the sides tell how the function bends."""
        place, rounding = self.best, float(self._blur[self.best]) / _HIDDEN
        beside = [each for each in (place - 1, place + 1) if 0 <= each < len(self.steps)]
        if not any(self._blur[each] / _HIDDEN <= max(abs(self.slope), self.reach) / 2 for each in beside):
            return max(abs(float(self.right[place] - self.left[place])) / _BEND, rounding)
        return max(_change(self.central, place), rounding)

    def allows(self, slope: float, margin: float, telling: float) -> bool:
        """Whether the small steps speak for a slope, as far as rounding lets them tell, up to one at which rounding is
        less than `telling`; beyond it the function may bend."""
        known = np.isfinite(self.central) & np.isfinite(self._blur)
        for off, blur in zip(np.abs(self.central - slope)[known], self._blur[known], strict=True):
            if off > blur + margin:
                return False
            if blur <= telling:
                return True
        return False

    @property
    def is_finite(self) -> bool:
        """Whether at least three steps beside each other have finite values on both sides."""
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
        """The largest slope that the function shows at any step, where it is more than rounding: how much it has to do
        with what is moved."""
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
    large ones if none of these changes it. Where small steps do not change it and larger ones do, what lies between is
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
    """Steps below the first: an element that is small beside the others may want them. None is smaller than a share of
    the element that its own numbers can tell."""
    moved = probe.direction != 0
    sizes = np.abs(point.astype(np.float64)[moved]) / np.abs(probe.direction[moved])
    least = 16 * resolution * float(np.max(sizes, initial=0.0))
    return sorted(step for step in (first / 10.0**decade for decade in range(1, _SMALLER + 1)) if step > least)


def _leap(problem: Problem, place: int, found: Differences) -> float:
    """How far the function jumps between the largest step that leaves it as it is and the next, by bisection: next to
    nothing if it only bends there."""
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
    """What an estimate differs by from that at the next smaller step, or at the next larger if that is nearer."""
    beside = [estimates[each] for each in (place - 1, place + 1) if 0 <= each < len(estimates)]
    changes = np.abs(np.array(beside) - estimates[place])
    return float(np.min(changes[np.isfinite(changes)], initial=np.inf))


def _surest(estimates: Array, blur: Array, allowance: Sequence[float] = _ALLOWED) -> int:
    """Of the steps whose estimates agree with those at all smaller steps, as far as rounding lets these tell, the one
    that is the least off (Lepski's rule: what rounding does shrinks with the step, what bending does grows)."""
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
