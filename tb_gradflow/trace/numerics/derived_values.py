"""Whether one array was computed from another, as far as their values show.

The evidence must be beyond chance: numbers that people type (0, 1, 0.5, 1e-3) prove nothing, and many relations are
tried. So a relation counts only for values with digits that nobody would type, or for many elements at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

UNNAMED = ""
"""A relation that is not a single function."""

_TOLERANCE = 3e-6

# n elements are in the order of n others by chance once in n! times: 1 in 40,320 for eight.
_FEWEST_ORDERED = 8

# This many common numbers with six or more digits, and this share of the smaller array, cannot be chance.
_FEWEST_SHARED, _SHARE = 3, 0.25
_MANY = 100_000

# Nobody types more digits than these, and a computed number has that few by chance once in 500 times.
_TYPED_DIGITS = 3

_LARGEST = 10_000_000


def relation(before: Any, after: Any, *, kin: Callable[[], bool] = lambda: False) -> str | None:
    """How `after` was computed from `before`, as in code; `UNNAMED` if no single known function computes it; None if
    there is no evidence.

    `kin` says whether both are stored in the same place, as attributes of one object: numbers that a person could have
    typed then count too. It is called only if needed.
    """
    if not (0 < np.size(before) <= _LARGEST and 0 < np.size(after) <= _LARGEST):
        return None
    first, second = np.asarray(before, np.float64), np.asarray(after, np.float64)
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return None
    name = next((name for name, made in _named(first) if _equal(made, second)), None)
    if name is not None:
        return name if is_telling(second) or (_is_worth_asking(name, second) and kin()) else None
    if _has_same_order(first, second) or _is_shifted_and_scaled(first, second):
        return UNNAMED
    if _is_in_every_row(first, second) and kin():
        return UNNAMED
    return _part(first, second, kin)


def _named(x: Array) -> Iterator[tuple[str, Array]]:
    """Results of the functions that are commonly applied to a parameter."""
    with np.errstate(all="ignore"):
        yield from _elementwise(x)
        # Of equal elements, `tf.nn.softmax` makes the same as any other function that divides by a sum.
        tells_functions_apart = x.size == 1 or bool(np.ptp(x))
        yield from ((name if tells_functions_apart else UNNAMED, made) for name, made in _as_a_whole(x))


def _elementwise(x: Array) -> Iterator[tuple[str, Array]]:
    yield "tf.identity", x
    yield "tf.exp", np.exp(x)
    yield "tf.nn.softplus", np.logaddexp(x, 0)
    yield "tf.sigmoid", 1 / (1 + np.exp(-x))
    yield "tf.tanh", np.tanh(x)
    yield "tf.square", x * x
    yield "tf.sqrt", np.sqrt(x)
    yield "tf.abs", np.abs(x)
    yield "tf.math.log", np.log(x)
    yield "tf.math.log1p", np.log1p(x)
    yield "tf.math.reciprocal", 1 / x
    yield "tf.math.rsqrt", 1 / np.sqrt(x)
    yield "tf.negative", -x
    yield "tf.nn.relu", np.maximum(x, 0)
    yield "tf.sin", np.sin(x)
    yield "tf.cos", np.cos(x)
    for made in (np.exp(-x), np.exp(x / 2), np.exp(2 * x), np.exp(-2 * x), 1 - x, 1 + x, 2 * x, x / 2, 1 / (1 + x)):
        yield UNNAMED, made


def _as_a_whole(x: Array) -> Iterator[tuple[str, Array]]:
    yield "tf.reduce_sum", np.asarray(np.sum(x))
    yield "tf.reduce_mean", np.asarray(np.mean(x))
    yield "tf.norm", np.asarray(np.sqrt(np.sum(x * x)))
    yield "tf.reduce_max", np.asarray(np.max(x))
    if x.ndim:
        shifted = np.exp(x - np.max(x, axis=-1, keepdims=True))
        yield "tf.nn.softmax", shifted / np.sum(shifted, axis=-1, keepdims=True)
        yield "tf.nn.log_softmax", np.log(shifted / np.sum(shifted, axis=-1, keepdims=True))
        yield "tf.nn.l2_normalize", x / np.sqrt(np.sum(x * x))
        yield "tf.nn.l2_normalize", x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True))
        yield "tf.nn.l2_normalize", x / np.sqrt(np.sum(x * x, axis=0, keepdims=True))
        yield "tf.cumsum", np.cumsum(x, axis=-1)
    if x.ndim == 1 and x.size <= 1000:
        yield "tf.linalg.diag", np.diag(x)
        yield UNNAMED, np.outer(x, x)
    if x.ndim == 2 and max(x.shape) <= 1000:
        yield "tf.transpose", x.T
        yield UNNAMED, x @ x.T
        yield UNNAMED, x.T @ x
        if x.shape[0] == x.shape[1] and np.linalg.matrix_rank(x) == x.shape[0]:
            yield "tf.linalg.inv", np.asarray(np.linalg.inv(x), np.float64)


def _equal(made: Array, after: Array) -> bool:
    """Whether the elements agree, ignoring dimensions of length one, or after repetition."""
    made, after = np.squeeze(made), np.squeeze(after)
    if made.shape != after.shape:
        if not made.size < after.size or made.ndim > after.ndim or after.shape[after.ndim - made.ndim :] != made.shape:
            return False
        made = np.broadcast_to(made, after.shape)
    return bool(np.allclose(made, after, rtol=_TOLERANCE, atol=1e-30))


def is_telling(values: Any) -> bool:
    """Whether some values have digits that nobody would type."""
    return bool(_untyped(np.asarray(values, np.float64)).size)


def _is_worth_asking(name: str, values: Array) -> bool:
    """Zeros occur everywhere, and a copy of a single number is not a computation."""
    return bool(values.any()) and (name != "tf.identity" or len(np.unique(values)) > 1)


def _untyped(values: Array) -> Array:
    """The distinct numbers with more digits than a person types."""
    distinct = np.unique(values[(values != 0) & np.isfinite(values)])
    size = 10.0 ** (np.floor(np.log10(np.abs(distinct))) - _TYPED_DIGITS + 1)
    untyped: Array = distinct[np.abs(np.round(distinct / size) * size - distinct) > _TOLERANCE * np.abs(distinct)]
    return untyped


def _part(first: Array, second: Array, kin: Callable[[], bool]) -> str | None:
    """How the numbers of one array got into the other: stacked, gathered, sliced, filled into a matrix."""
    numbers = _untyped(second)
    if not numbers.size:
        return None
    own = _untyped(first)
    common = int(np.isin(np.float32(own), np.float32(numbers)).sum())
    # Among very many numbers some agree by chance.
    share = _SHARE if max(own.size, numbers.size) < _MANY else 0.9
    if common >= _FEWEST_SHARED and common >= share * min(own.size, numbers.size):
        return UNNAMED
    if numbers.size > _MANY or first.size > numbers.size:
        return None
    with np.errstate(all="ignore"):
        made = [
            name for name, values in _elementwise(first) if _holds_all(numbers, _untyped(values[np.isfinite(values)]))
        ]
    return made[0] if made and kin() else None


def _holds_all(numbers: Array, wanted: Array) -> bool:
    """Whether each element of `wanted` is in `numbers`; both are sorted."""
    if not wanted.size:
        return False
    place = np.clip(np.searchsorted(numbers, wanted), 1, len(numbers) - 1) if len(numbers) > 1 else np.zeros(1, int)
    near = np.minimum(np.abs(numbers[place] - wanted), np.abs(numbers[place - 1] - wanted))
    return bool((near <= _TOLERANCE * np.abs(wanted)).all())


def _is_in_every_row(first: Array, second: Array) -> bool:
    """Whether every row is a multiple of the same numbers, `positions[:, None] * frequencies`, and the rows differ."""
    x = np.squeeze(first)
    if x.ndim != 1 or x.size < _FEWEST_SHARED or second.ndim < 2 or second.shape[-1] != x.size or not x.all():
        return False
    if len(np.unique(x)) < _FEWEST_SHARED or len(np.unique(second)) <= x.size:
        return False
    factors = second / x
    return bool(np.allclose(factors, factors[..., :1], rtol=_TOLERANCE, atol=1e-30))


def _has_same_order(first: Array, second: Array) -> bool:
    """Whether the elements have the same or the opposite order: any monotone function applied to each."""
    if first.size != second.size or first.size < _FEWEST_ORDERED or np.squeeze(first).shape != np.squeeze(second).shape:
        return False
    a, b = first.ravel(), second.ravel()
    # Numbers that are already sorted, such as positions or grids, agree with every other such array.
    if len(np.unique(a)) < _FEWEST_ORDERED or (np.diff(a) >= 0).all() or (np.diff(a) <= 0).all():
        return False
    steps = np.diff(b[np.argsort(a, kind="stable")])
    distinct = len(np.unique(b)) >= _FEWEST_ORDERED
    return distinct and bool((steps >= 0).all() or (steps <= 0).all())


def _is_shifted_and_scaled(first: Array, second: Array) -> bool:
    """Whether one factor and one offset make one array out of the other, the same for all its elements or for those of
    each row or each column: what is standardised, divided by its sum or its norm, or multiplied by a rate."""
    x, y = np.squeeze(first), np.squeeze(second)
    if x.shape != y.shape or not x.ndim or not is_telling(x) or not is_telling(y):
        return False
    return any(_is_line(x, y, axis) for axis in (None, *range(x.ndim if x.ndim > 1 else 0)))


def _is_line(x: Array, y: Array, axis: int | None) -> bool:
    """Whether the points lie on one line along an axis. Two points always do, and evenly spaced numbers are those of
    every other grid: each line must have three distinct values at uneven distances."""
    ordered = np.sort(x, axis=axis)
    gaps = np.diff(ordered, axis=-1 if axis is None else axis)
    widest = np.ptp(x, axis=axis, keepdims=axis is not None)
    if ((gaps > _UNEVEN * widest).sum(axis=axis) < 2).any() or (
        np.ptp(gaps, axis=axis) < _UNEVEN * np.squeeze(widest)
    ).any():
        return False
    a, b = x - x.mean(axis=axis, keepdims=True), y - y.mean(axis=axis, keepdims=True)
    line = a * ((a * b).sum(axis=axis, keepdims=True) / (a * a).sum(axis=axis, keepdims=True))
    size = np.abs(y).max(axis=axis, keepdims=True)
    spread = np.abs(b).max(axis=axis, keepdims=True)
    return bool((spread > _UNEVEN * size).all() and (np.abs(line - b) <= _TOLERANCE * size).all())


_UNEVEN = 1e-2
"""A share of the whole range: what differs by less may do so by rounding."""
