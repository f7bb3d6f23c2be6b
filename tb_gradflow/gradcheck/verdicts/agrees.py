"""The gradient is the derivative."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tb_gradflow.gradcheck.comparison import Comparison, scale_of
from tb_gradflow.gradcheck.differences import Differences
from tb_gradflow.gradcheck.problem import Array
from tb_gradflow.gradcheck.report import ArgumentCheck
from tb_gradflow.gradcheck.verdicts.kink import at_a_kink, is_between
from tb_gradflow.gradcheck.verdicts.words import count, told


def nothing_wrong(comparison: Comparison) -> ArgumentCheck:
    argument = comparison.argument
    outside = [each for each in comparison.rough if not is_between(comparison, each)]
    if comparison.rough:
        return at_a_kink(comparison, outside)
    unknown = comparison.unknown
    if not comparison.smooth:
        return no_good_step(comparison)
    if _is_made_of_steps(comparison):
        return _flat(comparison)
    error = comparison.error
    left = (
        f" {len(unknown)} more could not be compared: the differences are noise there, or not finite."
        if unknown
        else ""
    )
    what = "element" if comparison.by_element else "direction"
    message = f"The gradient matches the derivative along {count(len(comparison.smooth), what)}.{left}"
    return told(argument, "agrees", message, True, comparison, error)


def _is_made_of_steps(comparison: Comparison) -> bool:
    """Whether the function changes by jumps alone, further on, and the gradient says so."""
    found, gradient = comparison.found, comparison.argument.gradient
    return not np.any(gradient) and all(each.is_stepped and each.is_constant for each in found)


def _flat(comparison: Comparison) -> ArgumentCheck:
    message = (
        "The function is piecewise constant: the derivative is zero here, and so is the gradient. It is correct, but "
        "nothing can learn from it."
    )
    return told(comparison.argument, "agrees", message, True, comparison)


def agrees_by_pairs(comparison: Comparison, wrong: Sequence[Differences]) -> bool:
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
        sizes = scale_of(each.probe), scale_of(other.probe)
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


def symmetric(comparison: Comparison) -> ArgumentCheck:
    message = (
        "The function reads only one half of this symmetric matrix, but the gradient is spread over both. Summed over "
        "each pair of elements, it matches the derivative: it is correct as long as the matrix stays symmetric."
    )
    return told(comparison.argument, "agrees", message, True, comparison)


def no_good_step(comparison: Comparison) -> ArgumentCheck:
    return told(
        comparison.argument,
        "step",
        "The gradient could not be checked, as no step is accurate: small ones are lost in rounding, large ones in "
        "the curvature of the function. Compare in float64, or with a smaller function value: subtract a constant.",
        False,
        comparison,
        known=False,
    )
