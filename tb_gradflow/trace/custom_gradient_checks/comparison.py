"""Compares a custom gradient with the derivative of its function.

There are two independent references: TensorFlow's derivatives of the forward computation, and central differences at
the elements where the two gradients disagree most. This module only measures; `analyse` decides which is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tb_gradflow.record.schema import GradientCheck, GradientSample, InputCheck, Response
from tb_gradflow.trace.custom_gradient_checks.probe import SMALL_FACTOR, Probe
from tb_gradflow.trace.custom_gradient_checks.subgraph import Running, as_fed, is_floating, opened
from tb_gradflow.trace.protection.foreign import faults

Array = npt.NDArray[Any]

SAMPLES = 4

# Relative steps; the larger one confirms the smaller. The best steps balance rounding (epsilon / h) and curvature (h
# squared): the cube root of epsilon, 6e-6 in float64 and 5e-3 in float32. The required agreement is what was observed
# there for smooth functions, with a safety factor of ten.
_STEPS = {True: (6e-6, 6e-5), False: (5e-3, 1.5e-2)}
_AGREEMENT = {True: 1e-3, False: 3e-2}

# One-sided differences that are further apart than this lie on the two sides of a kink.
_KINK = {True: 2e-2, False: 0.2}

# Gradients that differ by less, relative to their norm, are equal except for rounding.
_SAME = 1e-3

# Elements of the derivative below this share of the largest count as flat parts of the function.
_FLAT = 1e-3


@dataclass(frozen=True, slots=True)
class Fetched:
    """The values of `Probe.fetches`."""

    fed: Sequence[Any]
    results: Sequence[Any]
    upstream: Sequence[Any]
    returned: Sequence[Any]
    answered: Sequence[Any]


def checked(known: GradientCheck, probe: Probe, values: Fetched) -> GradientCheck:
    """The comparison for the values of one step."""
    if not all(
        np.all(np.isfinite(_plain(each)))
        for each in (*values.fed, *values.results, *values.upstream)
        if is_floating(np.asarray(each))
    ):
        return replace(known, problem="some of its values are not finite in this step")
    if not any(np.any(_plain(each)) for each in values.upstream):
        return known
    problem = "its forward computation cannot run separately"
    for double in (True, False):
        try:
            assert probe.part is not None
            with opened(probe.part, double=double) as running:
                return _Comparison(probe, values, running).result(known)
        except _UnfaithfulError:
            problem = "its forward computation returns a different result each time"
        # The op may not support this precision, or may reject a nearby value. The report says what was not compared.
        except faults():
            continue
    return replace(known, problem=problem)


class _UnfaithfulError(Exception):
    """Run separately, the forward computation gives different results than in the step."""


class _Comparison:
    def __init__(self, probe: Probe, values: Fetched, running: Running) -> None:
        assert probe.part is not None
        self._probe, self._values, self._running, self._part = probe, values, running, probe.part
        given = zip(self._part.fed, values.fed, strict=True)
        self._fed = {tensor.name: as_fed(value, is_double=running.is_double) for tensor, value in given}
        arrived = iter(values.upstream)
        self._upstream = [None if each is None else _plain(next(arrived)) for each in probe.upstream]

    def result(self, known: GradientCheck) -> GradientCheck:
        self._be_faithful()
        returned, answered = self._aligned(self._values.returned), self._aligned(self._values.answered)
        fed = [None if each is None else as_fed(each, is_double=self._running.is_double) for each in self._upstream]
        automatic = self._running.derivatives(self._fed, fed)
        inputs = tuple(
            self._input(place, None if one is None else _plain(one), None if other is None else _plain(other))
            for place, (one, other) in enumerate(zip(returned, automatic, strict=True))
        )
        return replace(
            known,
            forward=tuple(dict.fromkeys(op.type for op in self._part.ops)),
            identity=self._is_identity(automatic),
            response="other" if self._is_limited(returned, automatic) else _response(returned, answered),
            inputs=inputs,
        )

    def _be_faithful(self) -> None:
        again = self._running.results(self._fed)
        for before, now in zip(self._values.results, again, strict=True):
            if not np.allclose(_plain(before), _plain(now), rtol=1e-2, atol=1e-3 * _largest(_plain(before)) + 1e-30):
                raise _UnfaithfulError

    def _aligned(self, listed: Sequence[Any]) -> list[Any]:
        """One entry for each argument, None if the gradient function returned None."""
        present = iter(listed)
        return [None if tensor is None else next(present) for tensor in self._probe.returned]

    def _is_identity(self, automatic: Sequence[Any]) -> bool:
        """Whether some result equals an argument, whatever its shape, and changes with it."""
        arguments = [_plain(self._fed[group[0].name]).ravel() for group in self._part.arguments]
        moves = [None if each is None else _plain(each).ravel() for each in automatic]
        return any(
            np.array_equal(argument, _plain(result).ravel())
            and move is not None
            and np.array_equal(move, arrived.ravel())
            for argument, move in zip(arguments, moves, strict=True)
            for result, arrived in zip(self._values.results, self._upstream, strict=True)
            if arrived is not None
        )

    def _is_limited(self, returned: Sequence[Any], automatic: Sequence[Any]) -> bool:
        """Whether it is the derivative of an elementwise function, clipped at a limit, as in Huber's loss."""
        arrived = [each for each in self._upstream if each is not None]
        if len(arrived) != 1 or len(returned) != 1 or returned[0] is None or automatic[0] is None:
            return False
        own, derivative = _plain(returned[0]), _plain(automatic[0])
        if own.shape != arrived[0].shape or derivative.shape != own.shape:
            return False
        felt = arrived[0] != 0
        return is_cut_off(own[felt] / arrived[0][felt], derivative[felt] / arrived[0][felt])

    def _input(self, place: int, returned: Array | None, automatic: Array | None) -> InputCheck:
        slot = self._probe.slots[place][0]
        value = self._fed[self._part.arguments[place][0].name]
        shape = None if returned is None else returned.shape
        if returned is None or returned.shape != value.shape:
            return InputCheck(slot, value.shape, shape, None, None, ())
        if automatic is not None and not np.all(np.isfinite(automatic)):
            automatic = None
        share, ratio = _compared(returned, automatic)
        worst = _worst(returned, automatic)
        samples = [sample for index in worst if (sample := self._sample(place, index, returned, automatic)) is not None]
        return InputCheck(slot, value.shape, shape, share, ratio, tuple(samples[:SAMPLES]))

    def _sample(self, place: int, index: tuple[int, ...], returned: Array, automatic: Array | None) -> Any:
        derivative = self._derivative(place, index, float(_or_zero(returned[index])))
        if derivative is None:
            return None
        own = float(returned[index])
        other = None if automatic is None else float(automatic[index])
        return GradientSample(tuple(map(int, index)), own if np.isfinite(own) else None, derivative, other)

    def _derivative(self, place: int, index: tuple[int, ...], claimed: float) -> float | None:
        """By central differences; None if two step sizes disagree, or if both sides do."""
        value = self._fed[self._part.arguments[place][0].name]
        scale = max(abs(float(value[index])), 1e-2 * _largest(value)) or 1.0
        found = [self._difference(place, index, step * scale, claimed) for step in _STEPS[self._running.is_double]]
        if None in found:
            return None
        one, other = (float(each) for each in found if each is not None)
        agreed = abs(one - other) <= _AGREEMENT[self._running.is_double] * max(abs(one), abs(other), abs(claimed) / 10)
        return one if agreed else None

    def _difference(self, place: int, index: tuple[int, ...], step: float, claimed: float) -> float | None:
        middle = self._running.results(self._fed)
        (above, up), (below, down) = (self._moved(place, index, sign * step) for sign in (1.0, -1.0))
        right, left = self._weighed(above, middle) / up, self._weighed(middle, below) / down
        central = self._weighed(above, below) / (up + down)
        apart = abs(right - left) > _KINK[self._running.is_double] * max(abs(right), abs(left), abs(claimed) / 10)
        return None if apart or not np.isfinite(central) else central

    def _moved(self, place: int, index: tuple[int, ...], step: float) -> tuple[list[Any], float]:
        """The results with one element changed, and by how much it really changed: floating-point numbers are
        discrete.
        """
        name = self._part.arguments[place][0].name
        moved = np.array(self._fed[name])
        moved[index] += step
        results = self._running.results({**self._fed, name: moved})
        return results, abs(float(moved[index]) - float(self._fed[name][index])) or float("nan")

    def _weighed(self, above: Iterable[Any], below: Iterable[Any]) -> float:
        """The change of the results, weighted with the incoming gradient."""
        total = 0.0
        for one, other, weight in zip(above, below, self._upstream, strict=True):
            if weight is not None:
                total += float(np.sum((_plain(one) - _plain(other)) * weight))
        return total


def _compared(returned: Array, automatic: Array | None) -> tuple[float | None, float | None]:
    """The distance of two gradients, and the ratio of the first to the second, where the second is not flat."""
    if automatic is None:
        return None, None
    steep = np.abs(automatic) > _FLAT * _largest(automatic)
    one, other = _or_zero(returned)[steep], automatic[steep]
    size = float(np.linalg.norm(other))
    if not size:
        return None, None
    ratio = float(np.dot(one, other)) / size**2
    proportional = float(np.linalg.norm(one - ratio * other)) <= _SAME * size
    return float(np.linalg.norm(one - other)) / size, ratio if proportional else None


def _worst(returned: Array, automatic: Array | None) -> list[tuple[int, ...]]:
    """The elements to check: where two gradients differ most; otherwise where the returned one is largest, and a few
    more.
    """
    own = _or_zero(returned)
    if automatic is not None and np.any(automatic):
        size = np.abs(own - automatic) * (np.abs(automatic) > _FLAT * _largest(automatic))
        order = np.argsort(-size, axis=None, kind="stable")[: 2 * SAMPLES]
    else:
        largest = np.argsort(-np.abs(own), axis=None, kind="stable")[:SAMPLES]
        spread = np.linspace(0, own.size - 1, SAMPLES).astype(int) if own.size else np.zeros(0, int)
        order = np.array(list(dict.fromkeys([*largest.tolist(), *spread.tolist()])), int)
    return [tuple(int(each) for each in np.unravel_index(place, own.shape)) for place in order.tolist()]


def is_cut_off(own: Array, derivative: Array) -> bool:
    """Whether `own` is `derivative` clipped at one limit on both sides of zero.

    This needs an element inside the limits where the two are equal, or elements at both limits: a gradient that
    lacks a factor may have one element at a limit by chance.
    """
    if not own.size or not (np.all(np.isfinite(own)) and np.all(np.isfinite(derivative))):
        return False
    limit = float(np.max(np.abs(own)))
    if not limit or not np.allclose(own, np.clip(derivative, -limit, limit), rtol=_SAME, atol=_SAME * limit):
        return False
    cut = np.abs(derivative) > (1 + _SAME) * limit
    inside = np.any((np.abs(own) < 0.99 * limit) & (np.abs(own) > _FLAT * limit))
    return bool(np.any(cut) and (inside or (np.any(own[cut] > 0) and np.any(own[cut] < 0))))


def _response(returned: Sequence[Any], answered: Sequence[Any]) -> Response:
    pairs = [(_plain(one), _plain(other)) for one, other in zip(returned, answered, strict=True) if one is not None]
    if not pairs or not all(np.all(np.isfinite(each)) for pair in pairs for each in pair):
        return "unknown"
    if all(_close(other / SMALL_FACTOR, one) for one, other in pairs):
        return "linear"
    return "constant" if all(_close(other, one) for one, other in pairs) else "other"


def _close(one: Array, other: Array) -> bool:
    return bool(np.linalg.norm(one - other) <= _SAME * np.linalg.norm(other))


def _largest(array: Array) -> float:
    return float(np.max(np.abs(array), initial=0.0))


def _or_zero(array: Array) -> Array:
    return np.nan_to_num(np.asarray(array, np.float64), nan=0.0, posinf=0.0, neginf=0.0)


def _plain(value: Any) -> Array:
    return np.asarray(value).astype(np.float64)
