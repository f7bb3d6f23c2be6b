"""The gradient replaces the derivative of a piecewise constant function."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_gradflow.gradcheck.comparison import Comparison, scale_of
from tb_gradflow.gradcheck.differences import Differences, jumps_far_from
from tb_gradflow.gradcheck.problem import Problem
from tb_gradflow.gradcheck.report import ArgumentCheck
from tb_gradflow.gradcheck.verdicts.words import places, told

# Directions that are searched for a jump: each takes some hundred evaluations.
_LOOKED_AT = 6


def is_stand_in(comparison: Comparison, each: Differences) -> bool:
    """Whether the function has no slope along a direction, by steps that it makes, and the gradient claims one."""
    claimed = comparison.claimed(each.probe)
    rounds = comparison.argument.rounds
    flat = each.is_constant and not each.varies
    if not claimed:
        return False
    return (each.denies(claimed) and (each.is_stepped or (rounds and flat))) or (rounds and each.is_jump)


def straight_through(comparison: Comparison, found: Sequence[Differences]) -> ArgumentCheck:
    argument = comparison.argument
    where = places(found)
    coarse = next((each for each in found if is_coarse(each)), None)
    if coarse is not None and not argument.rounds:
        slope, step = coarse.at(-1) / scale_of(coarse.probe), coarse.steps[-1] * scale_of(coarse.probe)
        return told(
            argument,
            "step",
            f"Small steps do not change the function at all{where}: it returns too few digits. With a step of "
            f"{step:.2g} its slope is {slope:.3g}. Use steps of that size, or let it return more digits.",
            False,
            comparison,
            known=False,
        )
    jump = next((each for each in found if each.is_jump and each.probe.index is not None), None)
    answer = (
        f" A central difference gives {jump.jump:.3g} / 2h here, {jump.jump / 2e-3:.3g} at h = 0.001." if jump else ""
    )
    return told(
        argument,
        "straight_through",
        f"The function is piecewise constant{where}, so its derivative is zero, but the gradient is not: it replaces "
        f"the derivative, and finite differences will always disagree with it.{answer} This is correct if you intend "
        "a straight-through estimator.",
        True,
        comparison,
    )


def jumping_further_on(
    problem: Problem, place: int, comparison: Comparison, wrong: Sequence[Differences]
) -> list[Differences]:
    """The directions along which the gradient is wrong and the function jumps farther away, if it is known to round,
    compare or choose and to have a custom gradient: a codebook with nearest-entry lookup also has a smooth distance to
    the entry. Only some directions are examined."""
    if not comparison.argument.rounds:
        return []
    # Single elements first, and those on which both disagree most.
    disputed = sorted(
        wrong, key=lambda each: (each.probe.index is None, -abs(comparison.claimed(each.probe) - each.slope))
    )
    return [each for each in disputed[:_LOOKED_AT] if jumps_far_from(problem, place, each)]


def partly_straight_through(comparison: Comparison, found: Sequence[Differences]) -> ArgumentCheck:
    """The verdict where a function jumps further on, and has a slope here all the same."""
    return told(
        comparison.argument,
        "straight_through",
        f"The function jumps{places(found)} when the argument is moved further: it rounds, compares or chooses, and "
        "a gradient replaces the derivative of that. Finite differences show only the smooth part, and will always "
        "disagree with the rest. This is correct if you intend a straight-through estimator; the smooth part could not "
        "be checked.",
        True,
        comparison,
        comparison.error,
    )


def is_coarse(each: Differences) -> bool:
    """Whether the function seems smooth but its value is rounded: small steps do not change it, and large ones give a
    slope from differences that are small compared with the value."""
    far = each.central[-2:]
    if not each.is_constant or not np.all(np.isfinite(far)) or not np.all(far):
        return False
    changes = np.abs(np.array([*each.above, *each.below]) - each.middle)
    least = float(np.min(changes[changes > 0], initial=np.inf))
    return bool(abs(far[0] - far[1]) <= 0.3 * abs(far[1]) and least <= 1e-4 * abs(each.middle))
