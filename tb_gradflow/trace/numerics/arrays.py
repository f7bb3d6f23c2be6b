"""Statistics of arrays that are in memory: those of variables, and of how a step has moved them. What overflows on the
way warns nobody: the columns say it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_SAFE = (1e-30, 1e30)
"""Sums of squares between these lost nothing in float32."""

_PART = 1 << 16
"""Elements whose intermediate results fit into the processor's cache: memory that is new to the process costs more than
arithmetic."""


def parts_of(value: Array) -> Iterator[slice]:
    """Parts of an array of one dimension, of which the columns below are computed; one at least."""
    for start in range(0, max(value.size, 1), _PART):
        yield slice(start, start + _PART)


def whole_variable(parts: Sequence[Sequence[float]]) -> list[float]:
    """The `variable_columns` of an array, from those of its parts."""
    columns = np.array(parts, np.float64)
    return [*np.sqrt(np.square(columns[:, :2]).sum(0)), *columns[:, 2:].sum(0)]


def whole_movement(parts: Sequence[Sequence[float]]) -> list[float]:
    """The `movement_columns` of an array, from those of its parts."""
    columns = np.array(parts, np.float64)
    return [*columns[:, :-1].sum(0), parts[0][-1]]


@np.errstate(all="ignore")
def variable_columns(now: Array, change: Array | None, before: Array | None) -> list[float]:
    """In the order of `VARIABLE_STATISTICS`; `None` where the value before the step is not known."""
    if change is None or before is None:
        return [_norm(now), np.nan, np.nan, _nonfinite(now)]
    norms = [_norm(now), _norm(change)]
    if all(np.isfinite(norms)) and np.isfinite(np.dot(now, now)) and np.isfinite(np.dot(change, change)):
        return [*norms, 0.0, 0.0]
    return [*norms, _nonfinite(before), _nonfinite(now)]


@np.errstate(all="ignore")
def movement_columns(
    gradient: Array,
    before: Array,
    change: Array,
    memories: Sequence[Array],
    rate: float,
    epsilon: float,
    *,
    is_proportional: bool,
    is_scaled: bool,
) -> list[float]:
    """In the order of `MOVEMENT_STATISTICS`. `epsilon` is that of the variable's type. Steps are in proportion to the
    gradient, or as long as the rate; the length of a step is not known for a gradient that is still scaled."""
    is_zero, is_still = gradient == 0, change == 0
    moved = np.flatnonzero(is_zero > is_still)
    remembered = _count(np.logical_or.reduce([each[moved] != 0 for each in memories])) if moved.size else 0
    unmoved = np.flatnonzero(is_still > is_zero)
    unmoved = unmoved[np.isfinite(gradient[unmoved])]
    rounded = 0
    if unmoved.size and rate > 0 and not is_scaled:
        # Half the distance to the next number: smaller changes are rounded away.
        length = rate * np.abs(gradient[unmoved]) if is_proportional else rate
        rounded = _count(length < np.abs(before[unmoved]) * (epsilon / 2))
    return [_count(is_zero), moved.size, remembered, unmoved.size, rounded, rate]


def flat(value: Array) -> Array:
    """One dimension, as float32, or as float64 or complex if the array has that precision."""
    kind = value.dtype
    wide = kind if kind in (np.float32, np.float64) or kind.kind == "c" else np.dtype(np.float32)
    return np.ravel(value).astype(wide, copy=False)


def _norm(value: Array) -> float:
    """Of the finite elements."""
    if value.dtype.kind == "c":
        value = np.abs(value)
    square = float(np.dot(value, value))
    if _SAFE[0] < square < _SAFE[1]:
        return float(np.sqrt(square))
    finite = np.abs(value[np.isfinite(value)]).astype(np.float64)
    largest = float(finite.max(initial=0.0))
    # Scaled by the largest, as BLAS nrm2 does: squares of small numbers vanish.
    return largest * float(np.linalg.norm(finite / largest)) if largest else 0.0


def _nonfinite(value: Array) -> float:
    return float(value.size - _count(np.isfinite(value)))


def _count(values: Any) -> int:
    return int(np.count_nonzero(values))
