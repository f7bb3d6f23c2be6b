"""Whether gradient descent with some rate diverges."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tb_gradflow.gradcheck.problem import Array, Problem

_STEPS = 8

# A value this much larger than at the start is not a detour.
_DIVERGED = 10.0

_MOVE = 1e-3

# On a parabola, twice the best learning rate ends at the same value; this many times that rate, and this many times the
# size of the point, leads to another region of the function.
_LEAP = 100.0


def divergence(problem: Problem, gradients: Callable[[Sequence[Array]], Sequence[Array]], rate: float) -> str:
    """What some steps of gradient descent with this rate do, in a sentence, if they lead away, or the first is a leap;
    empty if not."""
    points = [argument.point.astype(np.float64) for argument in problem.arguments]
    values = [problem.here()]
    for _ in range(_STEPS):
        points = [point - rate * slope for point, slope in zip(points, gradients(points), strict=True)]
        moves = [point - argument.point for point, argument in zip(points, problem.arguments, strict=True)]
        values.append(problem.moved(moves))
        if not np.isfinite(values[-1]):
            break
    grown = values[-1] > _DIVERGED * max(abs(values[0]), abs(values[0] - min(values)))
    if np.isfinite(values[-1]) and not (grown and values[-1] > values[0]):
        return _leap(problem, gradients, rate, values[:2])
    steps = len(values) - 1
    told = (
        f"With a learning rate of {rate:g} gradient descent diverges: the value goes from {values[0]:.3g} to "
        f"{values[-1]:.3g} in {steps} step{'s' if steps > 1 else ''}."
    )
    limit = _largest_rate(problem, gradients)
    return f"{told} Rates below about {limit:.1g} do not overshoot here." if limit is not None else told


def _leap(
    problem: Problem, gradients: Callable[[Sequence[Array]], Sequence[Array]], rate: float, values: Sequence[float]
) -> str:
    """A sentence about a first step that goes so far that the slope no longer predicts its end; empty if the step stays
    in the range of the slope and the curvature."""
    limit = _largest_rate(problem, gradients)
    if limit is None or rate < _LEAP * limit:
        return ""
    points = [argument.point.astype(np.float64) for argument in problem.arguments]
    moves = [rate * np.abs(slope) for slope in gradients(points)]
    place = int(np.argmax([np.max(move, initial=0.0) for move in moves]))
    if not np.max(moves[place], initial=0.0) > _LEAP * np.max(np.abs(points[place]), initial=0.0):
        return ""
    return (
        f"With a learning rate of {rate:g} the first step moves argument {problem.arguments[place].name} by "
        f"{np.max(moves[place]):.2g}, far beyond the range in which its slope is meaningful. That the value goes from "
        f"{values[0]:.3g} to {values[1]:.3g} is chance, not convergence. Rates below about {limit:.1g} do not "
        "overshoot here."
    )


def _largest_rate(problem: Problem, gradients: Callable[[Sequence[Array]], Sequence[Array]]) -> float | None:
    """Two over the curvature along the gradient, above which a step of descent ends higher than it began on a parabola
    (Goodfellow et al., Deep Learning, 4.3.1); `None` if the function does not bend upwards there."""
    points = [argument.point.astype(np.float64) for argument in problem.arguments]
    slopes = gradients(points)
    length = float(np.sqrt(sum(float(np.sum(slope**2)) for slope in slopes)))
    size = float(np.sqrt(sum(float(np.sum(point**2)) for point in points))) or 1.0
    if not length:
        return None
    reach = _MOVE * size / length
    ahead = problem.moved([reach * slope for slope in slopes])
    back = problem.moved([-reach * slope for slope in slopes])
    curvature = (ahead + back - 2 * problem.here()) / (reach * length) ** 2
    return 2 / curvature if np.isfinite(curvature) and curvature > 0 else None
