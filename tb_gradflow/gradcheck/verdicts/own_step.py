"""The gradient is itself a difference, with a step of the user's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_gradflow.gradcheck.comparison import Comparison, relative, scale_of
from tb_gradflow.gradcheck.differences import Differences
from tb_gradflow.gradcheck.problem import Problem
from tb_gradflow.gradcheck.report import ArgumentCheck
from tb_gradflow.gradcheck.verdicts.agrees import no_good_step
from tb_gradflow.gradcheck.verdicts.stand_in import is_coarse, straight_through
from tb_gradflow.gradcheck.verdicts.words import percent, told

# Decimal exponent below which no step moves a number near one in float64.
_SMALLEST_STEP = -17


def own_step(
    problem: Problem, place: int, comparison: Comparison, wrong: Sequence[Differences]
) -> tuple[str, float] | None:
    """If the gradient was itself computed by finite differences: which kind, and its step."""
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
    direction = each.probe.direction / scale_of(each.probe)
    above = problem.at(place, step * direction)[0] if kind != "backward" else middle
    below = problem.at(place, -step * direction)[0] if kind != "forward" else middle
    value = (above - below) / (2 * step if kind == "central" else step)
    claimed = comparison.claimed(each.probe) / scale_of(each.probe)
    # A step that is lost makes zero, which any forgotten row is too.
    return bool(np.isfinite(value)) and value != 0 and abs(value - claimed) <= 1e-9 * max(abs(value), abs(claimed))


def differenced(comparison: Comparison, own: tuple[str, float]) -> ArgumentCheck:
    kind, step = own
    error, best = comparison.error, comparison.best_step
    good = f" A central difference with a step of about {best:.1g} is accurate." if best is not None else ""
    message = f"The gradient is a {kind} difference with a step of {step:g}, which is off by {percent(error)}.{good}"
    return told(comparison.argument, "step", message, False, comparison, error)


def of_step(problem: Problem, place: int, comparison: Comparison, step: float) -> ArgumentCheck:
    """The verdict on finite differences with one step, compared with those with the best."""
    argument = comparison.argument
    coarse = next((each for each in comparison.found if is_coarse(each)), None)
    if coarse is not None:
        return straight_through(comparison, [coarse])
    if not comparison.smooth:
        return no_good_step(comparison)
    yours = np.array([_difference_at(problem, place, each, step) for each in comparison.smooth])
    right = np.array([each.slope for each in comparison.smooth])
    error, best = relative(yours, right), comparison.best_step
    unsure = float(np.linalg.norm([each.uncertainty for each in comparison.smooth])) / (np.linalg.norm(right) or 1.0)
    assert best is not None
    if error <= comparison.tolerance + 3 * unsure:
        message = f"Central differences with a step of {step:g} match the derivative to {percent(error)}."
        return told(argument, "agrees", message, True, comparison, error)
    why = "so small that rounding dominates" if step < best else "so large that the curvature matters"
    message = (
        f"Central differences with a step of {step:g} are off by {percent(error)}: it is {why}. A step of about "
        f"{best:.1g} is accurate."
    )
    return told(argument, "step", message, False, comparison, error)


def _difference_at(problem: Problem, place: int, each: Differences, step: float) -> float:
    """The central difference with an absolute step, in the units of the other differences along that direction."""
    scale = scale_of(each.probe)
    (above, ahead), (below, back) = (
        problem.at(place, sign * step / scale * each.probe.direction) for sign in (1.0, -1.0)
    )
    length = float(np.sum(each.probe.direction**2))
    went = float(np.sum((ahead - back) * each.probe.direction)) / length
    return (above - below) / went if went else 0.0
