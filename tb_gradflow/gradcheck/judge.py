"""From differences to verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tb_gradflow.gradcheck.differences import Differences, Probe, differences, steps_for
from tb_gradflow.gradcheck.order import permuted, reordered
from tb_gradflow.gradcheck.probes import most_elements, probes_of, scales_of
from tb_gradflow.gradcheck.problem import Argument, Array, Problem
from tb_gradflow.gradcheck.report import ArgumentCheck, StepError, Verdict

# Gradients that differ by less, over the larger of both, are one. By machine epsilon: in float64 central differences
# are good to about its square root times a thousand, in float32 to some 1e-4 [seen: 6e-5 for a two-layer network], with
# a factor of a hundred in hand for functions that are less smooth.
_TOLERANCE = ((1e-10, 1e-5), (1e-5, 1e-2), (1.0, 0.1))

# Slopes smaller than such a share of the argument's largest are not what a descent follows.
_NEGLIGIBLE = 1e-3

# A slope that three times its uncertainty may change by half is as good as unknown: a factor of two would not show.
_TELLING = 0.5

# Of rounding below such a share of a slope it is said that the slope shows.
_VISIBLE = 0.1

# The same of the argument's largest slope: single precision at its best step, 5e-3, gets there for slopes down to a
# seventieth of the value over the size of the element.
_VISIBLE_BESIDE = 0.03

# Decimal exponent below which no step moves a number near one in float64.
_SMALLEST_STEP = -17

# Numbers that a mistake multiplies by.
_SIMPLE = (-1.0, 2.0, 0.5, -2.0, -0.5)

_SHOWN = 8


@dataclass(frozen=True, eq=False)
class Comparison:
    """What one argument's differences say of its gradient.

    Attributes:
        argument: The argument.
        found: Its differences, one for each direction.
        tolerance: Relative difference up to which gradients are one.
        beside: The largest slope that is claimed for any argument: a bias before a batch normalisation has none, and
            rounding hides that only beside itself.
    """

    argument: Argument
    found: Sequence[Differences]
    tolerance: float
    beside: float = 0.0

    def claimed(self, probe: Probe, gradient: Array | None = None) -> float:
        """What a gradient says of the slope along a direction."""
        gradient = self.argument.gradient if gradient is None else gradient
        assert gradient is not None
        return float(np.sum(gradient * probe.direction))

    def agrees(self, each: Differences, gradient: Array | None = None) -> bool:
        """Whether a gradient is the slope along a direction where the function is smooth."""
        claimed = self.claimed(each.probe, gradient)
        size = max(abs(claimed), abs(each.slope), _NEGLIGIBLE * self.largest)
        if abs(claimed - each.slope) <= self.tolerance * size + 3 * each.uncertainty:
            return True
        telling = max(_VISIBLE * abs(each.slope), _VISIBLE_BESIDE * self.largest)
        return bool(np.isfinite(claimed)) and each.allows(claimed, self.tolerance * size, telling)

    @property
    def by_element(self) -> bool:
        """Whether each element was moved by itself."""
        return len(self.found) == self.argument.point.size and all(each.probe.index is not None for each in self.found)

    @cached_property
    def largest(self) -> float:
        """The largest slope along any direction that has one."""
        return max((abs(each.slope) for each in self.found if each.is_smooth), default=0.0)

    @cached_property
    def smooth(self) -> list[Differences]:
        """The directions along which finite differences can tell a slope."""
        return [each for each in self.found if each.is_smooth and self._is_telling(each)]

    @property
    def unknown(self) -> list[Differences]:
        """The directions of which finite differences say nothing."""
        return [each for each in self.found if not each.is_jump and not each.is_kink and each not in self.smooth]

    @property
    def rough(self) -> list[Differences]:
        """The directions with a kink or a jump."""
        return [each for each in self.found if each.is_kink or each.is_jump]

    def fits(self, gradient: Array) -> bool:
        """Whether a gradient agrees along all directions that can tell."""
        return bool(self.smooth) and all(self.agrees(each, gradient) for each in self.smooth)

    def _is_telling(self, each: Differences) -> bool:
        """Whether a wrong slope would show: one of the size that is claimed, or that the function has elsewhere."""
        claimed = 0.0 if self.argument.gradient is None else self._claimed_or_zero(each.probe)
        if each.is_constant and claimed == 0:
            return True
        size = max(abs(claimed), abs(each.slope), each.reach, _NEGLIGIBLE * self.largest, _NEGLIGIBLE * self.beside)
        return 3 * each.uncertainty <= _TELLING * size

    def _claimed_or_zero(self, probe: Probe) -> float:
        gradient = self.argument.gradient
        assert gradient is not None
        return self.claimed(probe) if gradient.shape == probe.direction.shape else 0.0


def check_argument(problem: Problem, place: int, middle: float, step: float | None = None) -> ArgumentCheck:
    """The verdict on one argument. With an absolute `step`, and without a gradient, on the finite differences that
    somebody takes with that step instead of one."""
    argument = problem.arguments[place]
    if not np.isfinite(middle):
        return _told(
            argument, "differs", f"The function is {middle} at this point: there is no derivative to compare.", False
        )
    if problem.here() != middle:
        return _told(
            argument,
            "random",
            "The function returns a different value on each call with the same arguments, although its random seed "
            "was fixed: finite differences of it are noise. Draw the random numbers outside, and pass them as an "
            "argument.",
            False,
            known=False,
        )
    steps, most = steps_for(argument.resolution), most_elements(len(problem.arguments))
    found = [differences(problem, place, probe, middle, steps) for probe in probes_of(argument, most)]
    tolerance = next(each for limit, each in _TOLERANCE if argument.resolution < limit)
    comparison = Comparison(argument, found, tolerance, max(map(_steepest, problem.arguments)))
    if argument.gradient is None and step is not None:
        return _of_step(problem, place, comparison, step)
    if argument.gradient is None:
        return _disconnected(comparison)
    if argument.gradient.shape != argument.point.shape:
        return _of_another_shape(comparison)
    return _judged(problem, place, comparison)


def _steepest(argument: Argument) -> float:
    """The largest slope that is claimed for one of its elements."""
    if argument.gradient is None or argument.gradient.shape != argument.point.shape:
        return 0.0
    slopes = np.abs(argument.gradient * scales_of(argument))
    return float(np.max(slopes[np.isfinite(slopes)], initial=0.0))


def _judged(problem: Problem, place: int, comparison: Comparison) -> ArgumentCheck:
    argument, found = comparison.argument, comparison.found
    assert argument.gradient is not None
    if not np.all(np.isfinite(argument.gradient)):
        count = int(np.sum(~np.isfinite(argument.gradient)))
        return _told(argument, "differs", f"The gradient is not finite in {_count(count, 'element')}.", False)
    stand_in = [each for each in found if _is_stand_in(comparison, each)]
    if stand_in:
        return _straight_through(comparison, stand_in)
    wrong = [each for each in comparison.smooth if not comparison.agrees(each)]
    if not wrong:
        return _nothing_wrong(comparison)
    if _agrees_by_pairs(comparison, wrong):
        return _symmetric(comparison)
    if factor := _factor(comparison):
        return _by_a_factor(comparison, factor)
    if order := reordered(argument.gradient, comparison.fits):
        return _ordered(comparison, order)
    if len(comparison.smooth) == len(found) == argument.point.size and argument.gradient.size > 2:
        derivative = np.zeros(argument.point.shape)
        for each in found:
            derivative.flat[each.probe.index or 0] = each.slope / float(
                each.probe.direction.flat[each.probe.index or 0]
            )
        if order := permuted(argument.gradient, derivative, 10 * comparison.tolerance):
            return _ordered(comparison, order)
    if own := _own_step(problem, place, comparison, wrong):
        return _differenced(comparison, own)
    return _differs(comparison, wrong)


def _nothing_wrong(comparison: Comparison) -> ArgumentCheck:
    argument = comparison.argument
    outside = [each for each in comparison.rough if not _is_between(comparison, each)]
    if comparison.rough:
        return _at_a_kink(comparison, outside)
    unknown = comparison.unknown
    if not comparison.smooth:
        return _no_good_step(comparison)
    if _is_made_of_steps(comparison):
        return _flat(comparison)
    error = _error(comparison)
    left = (
        f" {len(unknown)} more could not be compared: the differences are noise there, or not finite."
        if unknown
        else ""
    )
    what = "element" if comparison.by_element else "direction"
    message = f"The gradient matches the derivative along {_count(len(comparison.smooth), what)}.{left}"
    return _told(argument, "agrees", message, True, comparison, error)


def _agrees_by_pairs(comparison: Comparison, wrong: Sequence[Differences]) -> bool:
    """Whether point and gradient are symmetric matrices, of which the function reads one half, and the gradient is
    right for both elements of a pair together: so TensorFlow's is for a Cholesky decomposition."""
    point, gradient = comparison.argument.point.astype(np.float64), comparison.argument.gradient
    if gradient is None or point.ndim < 2 or not comparison.by_element or len(comparison.smooth) < point.size:
        return False
    if not _is_symmetric(point, comparison) or not _is_symmetric(gradient, comparison):
        return False
    place = np.arange(point.size).reshape(point.shape)
    twin = np.swapaxes(place, -1, -2).ravel()
    found = {each.probe.index: each for each in comparison.smooth}
    for each in wrong:
        index = each.probe.index
        assert index is not None
        other = found[int(twin[index])]
        sizes = _scale(each.probe), _scale(other.probe)
        slopes = each.slope / sizes[0], other.slope / sizes[1]
        unsure = each.uncertainty / sizes[0] + other.uncertainty / sizes[1]
        slack = comparison.tolerance * max(map(abs, slopes)) + 3 * unsure
        half = min(map(abs, slopes)) <= slack
        if other is each or not half or abs(sum(slopes) - 2 * float(gradient.flat[index])) > slack:
            return False
    return True


def _is_symmetric(matrix: Array, comparison: Comparison) -> bool:
    off = comparison.tolerance / 10 * float(np.max(np.abs(matrix), initial=0.0))
    square = matrix.shape[-1] == matrix.shape[-2] > 1
    return square and bool(np.allclose(matrix, np.swapaxes(matrix, -1, -2), rtol=0, atol=off))


def _symmetric(comparison: Comparison) -> ArgumentCheck:
    message = (
        "The function reads only one half of this symmetric matrix, but the gradient is spread over both. Summed over "
        "each pair of elements, it matches the derivative: it is correct as long as the matrix stays symmetric."
    )
    return _told(comparison.argument, "agrees", message, True, comparison)


def _is_made_of_steps(comparison: Comparison) -> bool:
    """Whether the function changes by jumps alone, further on, and the gradient says so."""
    found, gradient = comparison.found, comparison.argument.gradient
    return not np.any(gradient) and all(each.is_stepped and each.is_constant for each in found)


def _flat(comparison: Comparison) -> ArgumentCheck:
    message = (
        "The function is piecewise constant: the derivative is zero here, and so is the gradient. It is correct, but "
        "nothing can learn from it."
    )
    return _told(comparison.argument, "agrees", message, True, comparison)


def _is_stand_in(comparison: Comparison, each: Differences) -> bool:
    """Whether the function has no slope along a direction, by steps that it makes, and the gradient claims one."""
    claimed = comparison.claimed(each.probe)
    rounds = comparison.argument.rounds
    flat = each.is_constant and not each.varies
    if not claimed:
        return False
    return (each.denies(claimed) and (each.is_stepped or (rounds and flat))) or (rounds and each.is_jump)


def _straight_through(comparison: Comparison, found: Sequence[Differences]) -> ArgumentCheck:
    argument = comparison.argument
    places = _places(found)
    coarse = next((each for each in found if _is_coarse(each)), None)
    if coarse is not None and not argument.rounds:
        slope, step = coarse.at(-1) / _scale(coarse.probe), coarse.steps[-1] * _scale(coarse.probe)
        return _told(
            argument,
            "step",
            f"Small steps do not change the function at all{places}: it returns too few digits. With a step of "
            f"{step:.2g} its slope is {slope:.3g}. Use steps of that size, or let it return more digits.",
            False,
            comparison,
            known=False,
        )
    jump = next((each for each in found if each.is_jump and each.probe.index is not None), None)
    answer = (
        f" A central difference gives {jump.jump:.3g} / 2h here, {jump.jump / 2e-3:.3g} at h = 0.001." if jump else ""
    )
    return _told(
        argument,
        "straight_through",
        f"The function is piecewise constant{places}, so its derivative is zero, but the gradient is not: it replaces "
        f"the derivative, and finite differences will always disagree with it.{answer} This is correct if you intend "
        f"a straight-through estimator.",
        True,
        comparison,
    )


def _is_coarse(each: Differences) -> bool:
    """Whether the function seems smooth, and its value is rounded: small steps do not show, and large ones tell a slope
    by differences that are small beside the value."""
    far = each.central[-2:]
    if not each.is_constant or not np.all(np.isfinite(far)) or not np.all(far):
        return False
    changes = np.abs(np.array([*each.above, *each.below]) - each.middle)
    least = float(np.min(changes[changes > 0], initial=np.inf))
    return bool(abs(far[0] - far[1]) <= 0.3 * abs(far[1]) and least <= 1e-4 * abs(each.middle))


def _is_between(comparison: Comparison, each: Differences) -> bool:
    """Whether what the gradient claims at a kink is a slope of one side, or between both."""
    if each.is_jump:
        return False
    left, right = sorted(each.sides)
    slack = 10 * comparison.tolerance * max(abs(left), abs(right), _NEGLIGIBLE * comparison.largest)
    return left - slack <= comparison.claimed(each.probe) <= right + slack


def _at_a_kink(comparison: Comparison, outside: Sequence[Differences]) -> ArgumentCheck:
    argument, rough = comparison.argument, comparison.rough
    single = [each for each in outside or rough if each.probe.index is not None]
    first = (single or outside or rough)[0]
    scale = _scale(first.probe)
    rest = len(comparison.found) - len(rough)
    others = f" The other {rest} agree." if rest and not comparison.unknown else ""
    if first.is_jump:
        height = first.jump
        message = (
            f"The function jumps here{_places(rough)}, by {height:.3g}: there is no derivative, and a central "
            f"difference gives {height:.3g} / 2h, {height / 2e-3:.3g} at h = 0.001. Compare at a point next to the "
            f"jump.{others}"
        )
        return _told(argument, "kink", message, not outside, comparison)
    left, right = (side / scale for side in first.sides)
    claimed = comparison.claimed(first.probe) / scale
    verdict = (
        "is one of the two or lies between them, which is a valid choice"
        if not outside
        else "is neither of the two, nor between them"
    )
    message = (
        f"The function has a kink here{_places(rough)}: its slope is {left:.4g} on the left and {right:.4g} on the "
        f"right, and a central difference gives {(left + right) / 2:.4g}. The gradient, {claimed:.4g}, "
        f"{verdict}.{others}"
    )
    return _told(argument, "kink", message, not outside, comparison)


def _factor(comparison: Comparison) -> float | None:
    """What the gradient is times the derivative, the same everywhere; `None` if it is no such multiple."""
    smooth = comparison.smooth
    yours = np.array([comparison.claimed(each.probe) for each in smooth])
    right = np.array([each.slope for each in smooth])
    size = float(np.dot(right, right))
    if not size or not np.any(yours):
        return None
    factor = float(np.dot(yours, right)) / size
    slack = max(3 * comparison.tolerance, 10 * max(each.uncertainty for each in smooth) / np.sqrt(size))
    if np.linalg.norm(yours - factor * right) > slack * np.linalg.norm(yours):
        return None
    if abs(factor - 1) <= slack:
        return None
    known = [each for each in (*_SIMPLE, *_sizes(comparison.argument)) if abs(factor - each) <= slack * abs(each)]
    # Of one number any other is a multiple.
    return known[0] if known else factor if len(smooth) > 2 else None


def _sizes(argument: Argument) -> list[float]:
    sizes = sorted({float(size) for size in (*argument.point.shape, argument.point.size) if size > 1})
    return [*sizes, *(1 / size for size in sizes), *(-size for size in sizes)]


def _by_a_factor(comparison: Comparison, factor: float) -> ArgumentCheck:
    argument = comparison.argument
    why = ""
    if factor == -1:
        why = " A sign is wrong."
    elif factor in (2.0, 0.5):
        why = " Check the factor of 2 of a square, or a term that is counted twice or by half."
    elif factor in argument.point.shape or factor == argument.point.size:
        why = (
            f" {factor:.0f} is a dimension of this argument: a sum is used instead of a mean, or a broadcast was "
            f"summed."
        )
    elif any(factor == 1 / size for size in (*argument.point.shape, argument.point.size)):
        why = f" {1 / factor:.0f} is a dimension of this argument: a mean is used instead of a sum."
    elif abs(factor - round(factor)) < 1e-3 and abs(factor) > 1:
        why = " If that is the number of rows, a sum is used instead of a mean."
    elif abs(factor) < 1 and abs(1 / factor - round(1 / factor)) < 1e-3:
        why = f" If {1 / factor:.0f} is the number of rows, a mean is used instead of a sum."
    return ArgumentCheck(
        **_common(comparison, _error(comparison)),
        verdict="factor",
        message=f"The gradient is {factor:.6g} times the derivative, everywhere.{why}",
        correct=False,
        factor=factor,
    )


def _ordered(comparison: Comparison, how: str) -> ArgumentCheck:
    message = f"The gradient contains the values of the derivative in a different order: {how}."
    return _told(comparison.argument, "order", message, False, comparison, _error(comparison))


def _of_another_shape(comparison: Comparison) -> ArgumentCheck:
    argument = comparison.argument
    assert argument.gradient is not None
    given, wanted = argument.gradient.shape, argument.point.shape
    shapes = f"The gradient has the shape {given}, but the argument has the shape {wanted}"
    if argument.gradient.size == argument.point.size:
        if comparison.fits(argument.gradient.reshape(wanted)):
            return _told(argument, "order", f"{shapes}. Reshaped, it matches the derivative.", False)
        turned = argument.gradient.T
        if turned.shape == wanted and comparison.fits(turned):
            return _told(argument, "order", f"{shapes}: it is transposed.", False)
    why = ": sum over the axes that were broadcast" if argument.gradient.size > argument.point.size else ""
    return _told(argument, "differs", f"{shapes}{why}.", False)


def _own_step(
    problem: Problem, place: int, comparison: Comparison, wrong: Sequence[Differences]
) -> tuple[str, float] | None:
    """The difference that the gradient itself is, if somebody took it by finite differences: which, and its step."""
    elements = [each for each in wrong if each.probe.index is not None][:3]
    middle = problem.here()
    for exponent in range(0, _SMALLEST_STEP, -1):
        for digit in (5.0, 2.0, 1.0):
            step = digit * 10.0**exponent
            for kind in ("central", "forward", "backward"):
                fits = (_is_difference(problem, place, comparison, each, step, kind, middle) for each in elements)
                if elements and all(fits):
                    return kind, step
    return None


def _is_difference(
    problem: Problem, place: int, comparison: Comparison, each: Differences, step: float, kind: str, middle: float
) -> bool:
    direction = each.probe.direction / _scale(each.probe)
    above = problem.at(place, step * direction)[0] if kind != "backward" else middle
    below = problem.at(place, -step * direction)[0] if kind != "forward" else middle
    value = (above - below) / (2 * step if kind == "central" else step)
    claimed = comparison.claimed(each.probe) / _scale(each.probe)
    # A step that is lost makes zero, which any forgotten row is too.
    return bool(np.isfinite(value)) and value != 0 and abs(value - claimed) <= 1e-9 * max(abs(value), abs(claimed))


def _differenced(comparison: Comparison, own: tuple[str, float]) -> ArgumentCheck:
    kind, step = own
    error, best = _error(comparison), _best(comparison)
    good = f" A central difference with a step of about {best:.1g} is accurate." if best is not None else ""
    message = f"The gradient is a {kind} difference with a step of {step:g}, which is off by {_percent(error)}.{good}"
    return _told(comparison.argument, "step", message, False, comparison, error)


def _of_step(problem: Problem, place: int, comparison: Comparison, step: float) -> ArgumentCheck:
    """The verdict on finite differences with one step, beside those with the best."""
    argument = comparison.argument
    coarse = next((each for each in comparison.found if _is_coarse(each)), None)
    if coarse is not None:
        return _straight_through(comparison, [coarse])
    if not comparison.smooth:
        return _no_good_step(comparison)
    yours = np.array([_difference_at(problem, place, each, step) for each in comparison.smooth])
    right = np.array([each.slope for each in comparison.smooth])
    error, best = _relative(yours, right), _best(comparison)
    unsure = float(np.linalg.norm([each.uncertainty for each in comparison.smooth])) / (np.linalg.norm(right) or 1.0)
    good = f"{best:.1g}" if best is not None else "none"
    if error <= comparison.tolerance + 3 * unsure:
        message = f"Central differences with a step of {step:g} match the derivative to {_percent(error)}."
        return _told(argument, "agrees", message, True, comparison, error)
    small = abs(np.log10(step)) if best is None else step < best
    why = "so small that rounding dominates" if small else "so large that the curvature matters"
    message = (
        f"Central differences with a step of {step:g} are off by {_percent(error)}: it is {why}. A step of about "
        f"{good} is accurate."
    )
    return _told(argument, "step", message, False, comparison, error)


def _difference_at(problem: Problem, place: int, each: Differences, step: float) -> float:
    """The central difference with an absolute step, in the units of the other differences along that direction."""
    scale = _scale(each.probe)
    (above, ahead), (below, back) = (
        problem.at(place, sign * step / scale * each.probe.direction) for sign in (1.0, -1.0)
    )
    length = float(np.sum(each.probe.direction**2))
    went = float(np.sum((ahead - back) * each.probe.direction)) / length
    return (above - below) / went if went else 0.0


def _differs(comparison: Comparison, wrong: Sequence[Differences]) -> ArgumentCheck:
    argument = comparison.argument
    elements = [each for each in wrong if each.probe.index is not None]
    lines = []
    for each in elements[:3]:
        scale, index = _scale(each.probe), each.probe.index
        assert index is not None
        spot = ", ".join(str(int(place)) for place in np.unravel_index(index, argument.point.shape))
        lines.append(f"[{spot}]: {comparison.claimed(each.probe) / scale:.4g} instead of {each.slope / scale:.4g}")
    where = f" at {'; '.join(lines)}" if lines else ""
    if comparison.by_element:
        listed = ", ".join(str(each.probe.index) for each in elements[:_SHOWN])
        more = f" and {len(elements) - _SHOWN} more" if len(elements) > _SHOWN else ""
        right = len(comparison.smooth) - len(wrong)
        count = f"{len(wrong)} of {_count(argument.point.size, 'element')} differ"
        rest = f" The other {right} agree." if right else ""
        message = f"{count}, at the flat indices {listed}{more}: the gradient is{where[3:]}.{rest}" if lines else count
    else:
        message = (
            f"The gradient does not match the derivative along {len(wrong)} of {len(comparison.smooth)} "
            f"directions{where}."
        )
    return _told(argument, "differs", message, False, comparison, _error(comparison))


def _no_good_step(comparison: Comparison) -> ArgumentCheck:
    return _told(
        comparison.argument,
        "step",
        "The gradient could not be checked, as no step is accurate: small ones are lost in rounding, large ones in "
        "the curvature of the function. Compare in float64, or with a smaller function value: subtract a constant.",
        False,
        comparison,
        known=False,
    )


def _disconnected(comparison: Comparison) -> ArgumentCheck:
    argument, found = comparison.argument, comparison.found
    smooth = [each for each in found if each.is_smooth and abs(each.slope) > 0]
    if smooth:
        steepest = max(smooth, key=lambda each: abs(each.slope))
        slope = steepest.slope / (_scale(steepest.probe) if steepest.probe.index is not None else 1.0)
        what = (
            f"Finite differences show that the function depends on it: its slope is {slope:.4g}{_places([steepest])}."
        )
    elif any(each.is_jump or each.varies for each in found):
        what = "The function changes with it only in jumps, and is constant in between."
    else:
        what = "The function did not change with it in any of the steps tried."
    why = f" {argument.missing}" if argument.missing else ""
    return _told(argument, "disconnected", f"There is no gradient: it is None, not zero. {what}{why}", False)


def _told(
    argument: Argument,
    verdict: Verdict,
    message: str,
    correct: bool,
    comparison: Comparison | None = None,
    error: float | None = None,
    *,
    known: bool = True,
) -> ArgumentCheck:
    if comparison is None:
        return ArgumentCheck(argument.name, verdict, message, correct, known)
    return ArgumentCheck(**_common(comparison, error), verdict=verdict, message=message, correct=correct, known=known)


def _common(comparison: Comparison, error: float | None) -> dict[str, Any]:
    return {
        "name": comparison.argument.name,
        "relative_error": error,
        "steps": _steps(comparison),
        "best_step": _best(comparison),
        "compared": len(comparison.smooth),
    }


def _steps(comparison: Comparison) -> tuple[StepError, ...]:
    found = comparison.smooth or comparison.found
    argument = comparison.argument
    if not found or argument.gradient is None or argument.gradient.shape != argument.point.shape:
        return ()
    yours = np.array([comparison.claimed(each.probe) for each in found])
    scale = float(np.median(scales_of(argument)))
    told = []
    for relative in _common_steps(found):
        there = np.array([each.at(each.steps.index(relative)) for each in found])
        told.append(StepError(relative * scale, relative, _relative(yours, there)))
    return tuple(told)


def _common_steps(found: Sequence[Differences]) -> list[float]:
    """The steps that were tried along all directions."""
    return sorted(set[float](found[0].steps).intersection(*(each.steps for each in found)))


def _best(comparison: Comparison) -> float | None:
    """The step, as the median over elements, at which the differences are surest."""
    if not comparison.smooth:
        return None
    usual = float(np.median(np.log([each.steps[each.best] for each in comparison.smooth])))
    relative = min(_common_steps(comparison.smooth), key=lambda step: abs(np.log(step) - usual))
    return relative * float(np.median(scales_of(comparison.argument)))


def _error(comparison: Comparison) -> float:
    smooth = comparison.smooth
    yours = np.array([comparison.claimed(each.probe) for each in smooth])
    return _relative(yours, np.array([each.slope for each in smooth]))


def _relative(yours: Array, right: Array) -> float:
    if not np.all(np.isfinite(right)):
        return float("inf")
    size = max(float(np.linalg.norm(yours)), float(np.linalg.norm(right)))
    return float(np.linalg.norm(yours - right)) / size if size else 0.0


def _scale(probe: Probe) -> float:
    """The size of the one element that is moved; one for many."""
    return 1.0 if probe.index is None else float(np.abs(probe.direction).flat[probe.index])


def _places(found: Sequence[Differences]) -> str:
    """Where in the argument, as far as single elements are meant; empty otherwise."""
    indices = [each.probe.index for each in found if each.probe.index is not None]
    if not indices or found[0].probe.direction.size == 1:
        return ""
    shape = found[0].probe.direction.shape
    first = ", ".join(str(int(place)) for place in np.unravel_index(indices[0], shape))
    more = f" and {len(indices) - 1} more" if len(indices) > 1 else ""
    return f" (at [{first}]{more})"


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
