"""Which verdict fits: the kinds of verdict, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from tb_gradflow.gradcheck.comparison import Comparison, tolerance_for
from tb_gradflow.gradcheck.differences import Differences, Probe, differences, steps_for
from tb_gradflow.gradcheck.probes import directions_of, most_elements, probes_of, scales_of
from tb_gradflow.gradcheck.problem import Argument, OutOfBudget, Problem
from tb_gradflow.gradcheck.report import ArgumentCheck
from tb_gradflow.gradcheck.verdicts.agrees import agrees_by_pairs, nothing_wrong, symmetric
from tb_gradflow.gradcheck.verdicts.differs import differs
from tb_gradflow.gradcheck.verdicts.disconnected import disconnected
from tb_gradflow.gradcheck.verdicts.factor import by_a_factor, factor_of
from tb_gradflow.gradcheck.verdicts.order import of_another_shape, order_of, ordered
from tb_gradflow.gradcheck.verdicts.own_step import differenced, of_step, own_step
from tb_gradflow.gradcheck.verdicts.stand_in import (
    is_stand_in,
    jumping_further_on,
    partly_straight_through,
    straight_through,
)
from tb_gradflow.gradcheck.verdicts.words import count, told


def check_argument(problem: Problem, place: int, middle: float, step: float | None = None) -> ArgumentCheck:
    """The verdict on one argument. With an absolute `step` and no gradient, it is about finite differences with that
    step, which the user takes instead of a gradient."""
    argument = problem.arguments[place]
    try:
        return _checked(problem, place, middle, step)
    except OutOfBudget:
        message = "The function is too slow: not even one direction could be compared within the bound of a check."
        return replace(told(argument, "step", message, False, known=False), is_cut_short=True)


def _checked(problem: Problem, place: int, middle: float, step: float | None) -> ArgumentCheck:
    argument = problem.arguments[place]
    if not np.isfinite(middle):
        return told(
            argument, "differs", f"The function is {middle} at this point: there is no derivative to compare.", False
        )
    if problem.here() != middle:
        return told(
            argument,
            "random",
            "The function returns a different value on each call with the same arguments, although its random seed "
            "was fixed: finite differences of it are noise. Draw the random numbers outside, and pass them as an "
            "argument.",
            False,
            known=False,
        )
    steps, usual = steps_for(argument.resolution), most_elements(len(problem.arguments))
    # Two evaluations for each step.
    most = int(max(min(usual, problem.affordable // (2 * len(steps))), 0))
    found, is_cut_short = _found(problem, place, middle, steps, probes_of(argument, most))
    is_cut_short = is_cut_short or most < min(usual, argument.point.size)
    beside, tolerance = max(map(_steepest, problem.arguments)), tolerance_for(argument.resolution)
    comparison = Comparison(argument, found, tolerance, beside)
    if not comparison.smooth and not comparison.rough and argument.point.size > 1 and argument.gradient is not None:
        # One element by itself changes less than rounding does; all of them together may show.
        together, _ = _found(problem, place, middle, steps, directions_of(argument))
        comparison = Comparison(argument, [*found, *together], tolerance, beside)
    answer = _answer(problem, place, comparison, step)
    return replace(answer, is_cut_short=is_cut_short)


def _found(
    problem: Problem, place: int, middle: float, steps: Sequence[float], probes: Iterable[Probe]
) -> tuple[list[Differences], bool]:
    """The differences along these directions, and whether time ran out before some of them. Returns at least one, or
    raises OutOfBudget."""
    found: list[Differences] = []
    for probe in probes:
        try:
            found.append(differences(problem, place, probe, middle, steps))
        except OutOfBudget:
            if not found:
                raise
            return found, True
    return found, False


def _answer(problem: Problem, place: int, comparison: Comparison, step: float | None) -> ArgumentCheck:
    argument = comparison.argument
    if argument.gradient is None and step is not None:
        return of_step(problem, place, comparison, step)
    if argument.gradient is None:
        return disconnected(comparison)
    if argument.gradient.shape != argument.point.shape:
        return of_another_shape(comparison)
    return _judged(problem, place, comparison)


def _steepest(argument: Argument) -> float:
    """The largest slope that is claimed for one of its elements."""
    if argument.gradient is None or argument.gradient.shape != argument.point.shape:
        return 0.0
    slopes = np.abs(argument.gradient * scales_of(argument))
    return float(np.max(slopes[np.isfinite(slopes)], initial=0.0))


def _judged(problem: Problem, place: int, comparison: Comparison) -> ArgumentCheck:
    argument = comparison.argument
    assert argument.gradient is not None
    if not np.all(np.isfinite(argument.gradient)):
        wrong_ones = int(np.sum(~np.isfinite(argument.gradient)))
        return told(argument, "differs", f"The gradient is not finite in {count(wrong_ones, 'element')}.", False)
    stand_in = [each for each in comparison.found if is_stand_in(comparison, each)]
    if stand_in:
        return straight_through(comparison, stand_in)
    wrong = [each for each in comparison.smooth if not comparison.agrees(each)]
    if not wrong:
        return nothing_wrong(comparison)
    if agrees_by_pairs(comparison, wrong):
        return symmetric(comparison)
    try:
        return _wrong(problem, place, comparison, wrong)
    except OutOfBudget:
        factor = factor_of(comparison)
        return by_a_factor(comparison, factor) if factor else differs(comparison, wrong)


def _wrong(problem: Problem, place: int, comparison: Comparison, wrong: Sequence[Differences]) -> ArgumentCheck:
    """The kind of error in a gradient, which takes more evaluations to find."""
    if jumping := jumping_further_on(problem, place, comparison, wrong):
        return partly_straight_through(comparison, jumping)
    if factor := factor_of(comparison):
        return by_a_factor(comparison, factor)
    if order := order_of(problem, place, comparison):
        return ordered(comparison, order)
    if own := own_step(problem, place, comparison, wrong):
        return differenced(comparison, own)
    return differs(comparison, wrong)
