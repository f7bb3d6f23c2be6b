"""The whole check of one problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tb_gradflow.gradcheck import problem as problem_module
from tb_gradflow.gradcheck.descent import divergence
from tb_gradflow.gradcheck.judge import check_argument
from tb_gradflow.gradcheck.problem import Array, OutOfBudget, Problem
from tb_gradflow.gradcheck.report import ArgumentCheck, GradientsCheck, checked

Gradients = Callable[[Sequence[Array]], Sequence[Array]]

_STEP_OF_DESCENT = 1e-5


def check(problem: Problem, step: float | None, rate: float | None, gradients: Gradients | None) -> GradientsCheck:
    """Verdicts on all arguments. `gradients` returns the gradients that the training uses; `None` means central
    differences with `step`."""
    with np.errstate(all="ignore"):
        middle, count = problem.here(), len(problem.arguments)
        parts = count + (rate is not None)
        checks = []
        for place in range(count):
            problem.share(parts - place)
            checks.append(check_argument(problem, place, middle, step))
        notes = [*problem.notes, _left_out(problem, checks)]
        if rate is not None:
            problem.share(1)
            notes.append(_divergence(problem, gradients or _differences(problem, step), rate))
    return checked(checks, problem.evaluations, tuple(filter(None, notes)))


def _left_out(problem: Problem, checks: Sequence[ArgumentCheck]) -> str:
    """A sentence on what was not compared because the function is slow; empty if everything was."""
    short = [f"argument {each.name}" for each in checks if each.is_cut_short]
    if not short:
        return ""
    names = " and ".join(filter(None, (", ".join(short[:-1]), short[-1])))
    return (
        f"The function is slow: {problem.evaluations} evaluations took {problem.seconds:.2g} s. A check takes at most "
        f"about {problem_module.MOST_SECONDS:g} s and {problem_module.MOST_EVALUATIONS} evaluations, so {names} "
        f"{'was' if len(short) == 1 else 'were'} compared along fewer directions. To compare more, check one argument "
        "at a time, with the others fixed in the function, or a smaller problem."
    )


def _divergence(problem: Problem, gradients: Gradients, rate: float) -> str:
    try:
        return divergence(problem, gradients, rate)
    except OutOfBudget:
        return f"Whether a learning rate of {rate:g} is too high is not known: the function is too slow to descend."


def _differences(problem: Problem, step: float | None) -> Gradients:
    def gradients(points: Sequence[Array]) -> Sequence[Array]:
        found = []
        for place, point in enumerate(points):
            slopes = np.zeros(point.shape)
            for index in range(point.size):
                length = step or _STEP_OF_DESCENT * max(abs(float(point.flat[index])), 1.0)
                sides = []
                for sign in (1.0, -1.0):
                    moved = [np.array(each) for each in points]
                    moved[place].flat[index] += sign * length
                    sides.append(
                        problem.moved([one - each.point for one, each in zip(moved, problem.arguments, strict=True)])
                    )
                slopes.flat[index] = (sides[0] - sides[1]) / (2 * length)
            found.append(slopes)
        return found

    return gradients
