"""The whole check of one problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tb_gradflow.gradcheck.descent import divergence
from tb_gradflow.gradcheck.judge import check_argument
from tb_gradflow.gradcheck.problem import Array, Problem
from tb_gradflow.gradcheck.report import GradientsCheck, checked

Gradients = Callable[[Sequence[Array]], Sequence[Array]]

_STEP_OF_DESCENT = 1e-5


def check(problem: Problem, step: float | None, rate: float | None, gradients: Gradients | None) -> GradientsCheck:
    """Verdicts on all arguments. `gradients` returns the gradients that the training uses; `None` means central
    differences with `step`."""
    with np.errstate(all="ignore"):
        middle = problem.here()
        checks = [check_argument(problem, place, middle, step) for place in range(len(problem.arguments))]
        notes = list(problem.notes)
        if rate is not None:
            notes.append(divergence(problem, gradients or _differences(problem, step), rate))
    return checked(checks, problem.evaluations, tuple(filter(None, notes)))


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
