"""The same numbers in another order: Fortran's for C's, a transpose, blocks of a flat vector."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tb_gradflow.gradcheck.problem import Array

# Whether some gradient is the derivative, as far as it was measured.
Fits = Callable[[Array], bool]


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


def permuted(gradient: Array, derivative: Array, tolerance: float) -> str:
    """How a flat gradient is ordered that holds the very numbers of the derivative; empty if it does not."""
    yours, right = gradient.ravel(), derivative.ravel()
    if not _same_numbers(yours, right, tolerance):
        return ""
    if gradient.ndim > 1:
        return "its elements are in other positions"
    floor = _floor(right, tolerance)
    told, start = [], 0
    while start < len(right):
        rows, stop = _matrix(yours[start:], right[start:], floor, tolerance)
        stop = start + (stop or _shortest(yours[start:], right[start:], floor, tolerance))
        if rows:
            told.append(
                f"elements {start} to {stop - 1} are a {rows}x{(stop - start) // rows} matrix in Fortran order, and "
                "the function reads it in C order"
            )
        elif not _equal(yours[start:stop], right[start:stop], floor, tolerance):
            told.append(f"elements {start} to {stop - 1} are in another order")
        start = stop
    return "; ".join(told)


def _floor(values: Array, tolerance: float) -> float:
    return tolerance * float(np.max(np.abs(values), initial=0.0))


def _same_numbers(yours: Array, right: Array, tolerance: float) -> bool:
    one, other = np.sort(yours), np.sort(right)
    distinct = float(np.ptp(other)) > 10 * _floor(other, tolerance)
    return distinct and bool(np.allclose(one, other, rtol=10 * tolerance, atol=_floor(other, tolerance)))


def _equal(one: Array, other: Array, floor: float, tolerance: float) -> bool:
    return bool(np.allclose(one, other, rtol=10 * tolerance, atol=floor))


def _shortest(yours: Array, right: Array, floor: float, tolerance: float) -> int:
    """The length of the smallest run from the start that holds the same numbers in both."""
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
