"""Gradients that fade or grow between the loss and a variable, measured along the way from the loss."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import log10

from tb_gradflow.analyse.evidence import Suspect, Verdict

# One op that alone takes this many orders of magnitude is no matter of depth.
_SINGLE_DECADES = 4.0

_LOCAL_FADING = {
    "Sigmoid": "saturation_sigmoid",
    "Tanh": "saturation_sigmoid",
    "Softmax": "saturation_softmax",
    "LogSoftmax": "saturation_softmax",
}


@dataclass(frozen=True, slots=True)
class Slope:
    """One stretch of the way between two measured tensors.

    Attributes:
        op: The op nearest to the loss on it, which hands the gradient back over it.
        decades: Orders of magnitude that the largest element loses there; negative where it grows.
    """

    op: int
    decades: float


def slopes(suspect: Suspect) -> tuple[Slope, ...]:
    """How the gradient's largest element changes from the loss to the variable, the loss first."""
    gradient = suspect.topology.gradient(suspect.target)
    levels = suspect.measured.levels(suspect.target)
    readers = [op for op in suspect.topology.readers[suspect.state.variable] if gradient.hops[op] >= 0]
    if not readers or suspect.state.gradient is None:
        return ()
    way = gradient.from_op(min(readers, key=lambda op: gradient.hops[op]))
    found: list[Slope] = []
    # The gradient of the loss with respect to itself is one.
    after, level = way[-1], levels[way[-1]] or 1.0
    for op in reversed(way[:-1]):
        here = levels[op] if op != way[0] else suspect.state.gradient.max_abs
        if here:
            found.append(Slope(after, log10(level / here)))
            after, level = op, here
    return tuple(found)


def steepest(suspect: Suspect, *, growing: bool) -> Slope | None:
    """The steepest stretch made by the kind of op that changes the gradient most along the whole way."""
    way = slopes(suspect)
    sign = -1.0 if growing else 1.0
    by_type: dict[str, float] = defaultdict(float)
    for slope in way:
        by_type[suspect.type_of(slope.op)] += sign * slope.decades
    if not by_type:
        return None
    worst = max(by_type, key=lambda each: by_type[each])
    return max((slope for slope in way if suspect.type_of(slope.op) == worst), key=lambda each: sign * each.decades)


def local_saturation(suspect: Suspect) -> Verdict | None:
    """One squashing function takes nearly everything: it is saturated, and depth has no part in it."""
    way = slopes(suspect)
    worst = max(way, key=lambda slope: slope.decades, default=None)
    if worst is None or worst.decades < _SINGLE_DECADES or suspect.type_of(worst.op) not in _LOCAL_FADING:
        return None
    return Verdict(_LOCAL_FADING[suspect.type_of(worst.op)], "warning", worst.op)


def vanishing_depth(suspect: Suspect) -> Verdict | None:
    """Many ops that each take a little. The op named is the steepest of the kind that takes most."""
    worst = steepest(suspect, growing=False)
    return Verdict("vanishing_depth", "warning", worst.op if worst else suspect.culprit)


def normalise_zero_vector(suspect: Suspect) -> Verdict | None:
    """`l2_normalize` of a vector of zeros multiplies by one over the root of its epsilon."""
    way = slopes(suspect)
    worst = min(way, key=lambda slope: slope.decades, default=None)
    if worst is None or worst.decades > -_SINGLE_DECADES:
        return None
    op = suspect.topology.trace.ops[worst.op]
    rsqrt = any(suspect.type_of(edge.op) == "Rsqrt" for edge in op.inputs if edge.op >= 0)
    normalises = op.type == "Rsqrt" or rsqrt or "normalize" in (op.api or "")
    return Verdict("normalise_zero_vector", "warning", worst.op) if normalises else None


def exploding_recurrence(suspect: Suspect) -> Verdict | None:
    """Factors above one, multiplied. The op named is the steepest of the kind that adds most."""
    worst = steepest(suspect, growing=True)
    return Verdict("exploding_recurrence", "warning", worst.op if worst else suspect.culprit)
