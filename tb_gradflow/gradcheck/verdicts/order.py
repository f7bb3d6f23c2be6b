"""The same numbers in another order: Fortran's for C's, a transpose, blocks of a flat vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tb_gradflow.gradcheck.comparison import Comparison, scale_of
from tb_gradflow.gradcheck.differences import differences, steps_for
from tb_gradflow.gradcheck.probes import elements_along
from tb_gradflow.gradcheck.problem import Array, Problem
from tb_gradflow.gradcheck.report import ArgumentCheck
from tb_gradflow.gradcheck.verdicts.words import told

# Whether some gradient is the derivative, as far as it was measured.
Fits = Callable[[Array], bool]


# Fewer numbers are the same by chance.
_FEWEST = 3

# Axes with more elements are not searched for an order; and at most this many positions are listed.
_LONGEST = 64
_SHOWN = 4


def reordered(gradient: Array, fits: Fits) -> str:
    """How the gradient's elements have to be put in order to fit; empty if no such order is known."""
    for words, candidate in _candidates(gradient):
        if not np.array_equal(candidate, gradient) and fits(candidate):
            return words
    return ""


def _candidates(gradient: Array) -> Iterator[tuple[str, Array]]:
    shape = gradient.shape
    if gradient.ndim == 2 and shape[0] == shape[1]:
        yield "it is transposed", gradient.T
    if gradient.ndim >= 2:
        yield (
            "it was filled in Fortran order: use `order='C'` on both sides",
            gradient.ravel().reshape(shape, order="F"),
        )
        yield "it was read in Fortran order: use `order='C'` on both sides", gradient.ravel(order="F").reshape(shape)
    for axis in range(gradient.ndim):
        yield f"it is reversed along axis {axis}", np.flip(gradient, axis)


def order_of(problem: Problem, place: int, comparison: Comparison) -> str:
    """How the gradient's elements are ordered, if it holds those of the derivative in another order; empty if not."""
    gradient = comparison.argument.gradient
    assert gradient is not None
    if order := reordered(gradient, comparison.fits):
        return order
    permuted, has_matrix = _permuted_elements(comparison, gradient)
    # That a matrix is in Fortran order says more than which elements are elsewhere.
    return permuted if has_matrix else _along_an_axis(problem, place, comparison) or permuted


def _permuted_elements(comparison: Comparison, gradient: Array) -> tuple[str, bool]:
    """See `_permuted`; empty where not every element was compared."""
    if len(comparison.smooth) < gradient.size or not comparison.by_element or gradient.size < _FEWEST:
        return "", False
    derivative = np.zeros(gradient.shape)
    for each in comparison.found:
        derivative.flat[each.probe.index or 0] = each.slope / scale_of(each.probe)
    return _permuted(gradient, derivative, comparison.tolerance)


def _along_an_axis(problem: Problem, place: int, comparison: Comparison) -> str:
    """Which rows of the gradient are those of the derivative in another order, or columns: found along one line of
    elements, and then compared as a whole."""
    gradient, middle = comparison.argument.gradient, problem.here()
    assert gradient is not None
    steps = steps_for(comparison.argument.resolution)
    spot = tuple(int(each) for each in np.unravel_index(np.argmax(np.abs(gradient)), gradient.shape))
    for axis in range(gradient.ndim):
        line = np.moveaxis(gradient, axis, -1)[spot[:axis] + spot[axis + 1 :]]
        if not 2 < len(line) <= _LONGEST or len(set(line.tolist())) < len(line):
            continue
        probes = elements_along(comparison.argument, axis, spot)
        right = np.array(
            [
                each.slope / scale_of(each.probe)
                for each in (differences(problem, place, p, middle, steps) for p in probes)
            ]
        )
        # The largest of the one is the largest of the other, and so on.
        order = np.empty(len(line), int)
        order[np.argsort(right)] = np.argsort(line)
        if np.array_equal(order, np.arange(len(line))) or not comparison.fits(np.take(gradient, order, axis)):
            continue
        moved = np.flatnonzero(order != np.arange(len(line)))
        what = "elements" if gradient.ndim == 1 else f"entries along axis {axis}"
        listed = ", ".join(f"{order[each]} belongs at {each}" for each in moved[:_SHOWN])
        return f"{len(moved)} of its {len(line)} {what} are in other positions: {listed}" + (
            "" if len(moved) <= _SHOWN else " and so on"
        )
    return ""


def _permuted(gradient: Array, derivative: Array, tolerance: float) -> tuple[str, bool]:
    """The order of a gradient that has exactly the numbers of the derivative, and whether its matrices are in Fortran
    order; empty if it has other numbers.
    """
    yours, right = gradient.ravel(), derivative.ravel()
    if not _same_numbers(yours, right, tolerance):
        return "", False
    if gradient.ndim > 1:
        return "its elements are in other positions", False
    floor = _floor(right, tolerance)
    parts, start, has_matrix = [], 0, False
    while start < len(right):
        rows, stop = _matrix(yours[start:], right[start:], floor, tolerance)
        stop = start + (stop or _shortest(yours[start:], right[start:], floor, tolerance))
        has_matrix = has_matrix or bool(rows)
        if rows:
            parts.append(
                f"elements {start} to {stop - 1} are a {rows}x{(stop - start) // rows} matrix in Fortran order, and "
                "the function reads it in C order"
            )
        elif not _equal(yours[start:stop], right[start:stop], floor, tolerance):
            parts.append(f"elements {start} to {stop - 1} are in another order")
        start = stop
    return "; ".join(parts), has_matrix


def _floor(values: Array, tolerance: float) -> float:
    return tolerance * float(np.max(np.abs(values), initial=0.0))


def _same_numbers(yours: Array, right: Array, tolerance: float) -> bool:
    """Whether both have the same numbers when sorted. With many numbers, even two unrelated gradients come close to
    that: so each number must be closer to its counterpart than to its neighbours."""
    one, other = np.sort(yours), np.sort(right)
    gaps = np.diff(other)
    distinct = gaps[gaps > _floor(other, tolerance) / 10]
    if not len(distinct) or not np.allclose(one, other, rtol=tolerance, atol=_floor(other, tolerance)):
        return False
    return bool(np.median(np.abs(one - other)) < np.median(distinct) / 10)


def _equal(one: Array, other: Array, floor: float, tolerance: float) -> bool:
    return bool(np.allclose(one, other, rtol=10 * tolerance, atol=floor))


def _shortest(yours: Array, right: Array, floor: float, tolerance: float) -> int:
    """The length of the shortest prefix that has the same numbers in both."""
    lengths = range(1, len(right) + 1)
    same = (each for each in lengths if _equal(np.sort(yours[:each]), np.sort(right[:each]), floor, tolerance))
    return next(same, len(right))


def _matrix(yours: Array, right: Array, floor: float, tolerance: float) -> tuple[int, int]:
    """The rows and the size of the largest matrix at the start whose elements are in Fortran order for C's; zeros if
    there is none."""
    for size in range(len(right), 3, -1):
        for rows in range(2, size // 2 + 1):
            if size % rows or _equal(yours[:size], right[:size], floor, tolerance):
                continue
            if _equal(yours[:size], right[:size].reshape(rows, -1).ravel(order="F"), floor, tolerance):
                return rows, size
    return 0, 0


def ordered(comparison: Comparison, how: str) -> ArgumentCheck:
    message = f"The gradient contains the values of the derivative in a different order: {how}."
    return told(comparison.argument, "order", message, False, comparison, comparison.error)


def of_another_shape(comparison: Comparison) -> ArgumentCheck:
    argument = comparison.argument
    assert argument.gradient is not None
    given, wanted = argument.gradient.shape, argument.point.shape
    shapes = f"The gradient has the shape {given}, but the argument has the shape {wanted}"
    if argument.gradient.size == argument.point.size:
        if comparison.fits(argument.gradient.reshape(wanted)):
            return told(argument, "order", f"{shapes}. Reshaped, it matches the derivative.", False)
        turned = argument.gradient.T
        if turned.shape == wanted and comparison.fits(turned):
            return told(argument, "order", f"{shapes}: it is transposed.", False)
    why = ": sum over the axes that were broadcast" if argument.gradient.size > argument.point.size else ""
    return told(argument, "differs", f"{shapes}{why}.", False)
