"""The directions in which an argument is moved: each element; if it is large, some elements, and all together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_gradflow.gradcheck.differences import Probe
from tb_gradflow.gradcheck.problem import Argument, Array

# Each element and step takes two evaluations: up to this many elements are checked one by one.
MOST_ELEMENTS = 64

# Fewer for many arguments, so that a network with a hundred variables is checked in a few thousand evaluations.
_MOST_IN_ALL = 256
_FEWEST = 8

# If there are more elements, only these directions and elements are checked.
_DIRECTIONS = 6
_ELEMENTS = 12


def scales_of(argument: Argument) -> Array:
    """The size of each element, for proportional steps: at least a tenth of the typical size in the argument, also for
    zeros; one if all are zero."""
    sizes = np.abs(argument.point.astype(np.float64))
    some = sizes[sizes > 0]
    usual = float(np.median(some)) if some.size else 1.0
    return np.maximum(sizes, 0.1 * usual)


def most_elements(arguments: int) -> int:
    """Up to how many elements each of several arguments is checked element by element."""
    return max(_FEWEST, min(MOST_ELEMENTS, _MOST_IN_ALL // arguments))


def probes_of(argument: Argument, most: int = MOST_ELEMENTS) -> Iterator[Probe]:
    """The directions for one argument, the same in each run; all its elements if there are few enough."""
    scales = scales_of(argument)
    if argument.point.size <= most:
        for index in range(argument.point.size):
            yield _element(scales, index)
        return
    yield from directions_of(argument)
    for index in _chosen(argument, np.random.default_rng(1), min(_ELEMENTS, most)):
        yield _element(scales, index)


def directions_of(argument: Argument) -> Iterator[Probe]:
    """Directions in which all elements of an argument are moved, or about half of them."""
    scales, generator = scales_of(argument), np.random.default_rng(0)
    claimed = argument.gradient if argument.gradient is not None else np.zeros(0)
    for number in range(_DIRECTIONS):
        signs = generator.choice((-1.0, 1.0), size=scales.shape)
        if number % 2 == 0 and claimed.shape == scales.shape and np.any(claimed):
            # Where the gradient says that the function rises, in a half of the elements: the mean of a million numbers
            # changes by more than rounding in such a direction, and hardly in another.
            signs = np.where(signs > 0, np.sign(np.nan_to_num(claimed)), 0.0)
        yield Probe(signs * scales, None)


def elements_along(argument: Argument, axis: int, beside: tuple[int, ...]) -> Iterator[Probe]:
    """The elements along one axis, at the position of `beside` on the others."""
    scales = scales_of(argument)
    for place in range(argument.point.shape[axis]):
        spot = (*beside[:axis], place, *beside[axis + 1 :])
        yield _element(scales, int(np.ravel_multi_index(spot, argument.point.shape)))


def _chosen(argument: Argument, generator: np.random.Generator, count: int) -> list[int]:
    """Elements to look at: those with the largest gradient, and some others."""
    some = generator.choice(argument.point.size, count, replace=False)
    if argument.gradient is None or argument.gradient.size != argument.point.size:
        return sorted(some.tolist())
    sizes = np.abs(np.nan_to_num(argument.gradient)).ravel()
    largest = np.argpartition(-sizes, count // 2)[: count // 2]
    return sorted({*largest.tolist(), *some[count // 2 :].tolist()})


def _element(scales: Array, index: int) -> Probe:
    direction = np.zeros(scales.shape)
    direction.flat[index] = scales.flat[index]
    return Probe(direction, index)
