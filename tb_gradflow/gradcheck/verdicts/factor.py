"""The gradient is the derivative times a number."""

from __future__ import annotations

import numpy as np

from tb_gradflow.gradcheck.comparison import Comparison
from tb_gradflow.gradcheck.problem import Argument
from tb_gradflow.gradcheck.report import ArgumentCheck
from tb_gradflow.gradcheck.verdicts.words import common

# Numbers that a mistake multiplies with.
_SIMPLE = (-1.0, 2.0, 0.5, -2.0, -0.5)


def factor_of(comparison: Comparison) -> float | None:
    """The common factor between the gradient and the derivative; `None` if there is none."""
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
    # With a single number, any other number is a multiple of it.
    return known[0] if known else factor if len(smooth) > 2 else None


def _sizes(argument: Argument) -> list[float]:
    sizes = sorted({float(size) for size in (*argument.point.shape, argument.point.size) if size > 1})
    return [*sizes, *(1 / size for size in sizes), *(-size for size in sizes)]


def by_a_factor(comparison: Comparison, factor: float) -> ArgumentCheck:
    argument = comparison.argument
    why = ""
    if argument.replaced:
        meant = "reverses the gradient" if factor < 0 else "scales or stops a part of it"
        why = f" {argument.replaced}: nothing to fix if it {meant} on purpose."
    elif factor == -1:
        why = " A sign is wrong."
    elif factor in (2.0, 0.5):
        why = " Check the factor of 2 of a square, or a term that is counted twice or only by half."
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
        **common(comparison, comparison.error),
        verdict="factor",
        message=f"The gradient is {factor:.6g} times the derivative, everywhere.{why}",
        correct=False,
        factor=factor,
    )
