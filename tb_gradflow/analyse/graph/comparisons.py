"""Where a loss compares the results of a model with labels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile, pairwise

from tb_gradflow.analyse.graph.op_sets import LIMITS, MEANS, SOFTMAX_LOSS, shape_along
from tb_gradflow.analyse.graph.topology import Topology

DIFFERENCES = frozenset({"Sub", "SquaredDifference"})
PRODUCTS = frozenset({"Mul", "MulNoNan", "Xlogy", "RealDiv", "DivNoNan"})
_BENT = frozenset({"Square", "Abs", "Pow", "SquaredDifference"})

# Through these a difference becomes the mean error of a loss, whatever else is added to the loss.
_AVERAGED = _BENT | MEANS | {"Mul", "RealDiv", "DivNoNan", "AddV2", "AddN", "Identity", "Reshape", "Cast"}

_OF_KERAS = ("/log_cosh/", "/logcosh/", "/huber/", "/huber_loss/")
"""Losses that bend a difference in several ops, by the scope of these."""

_POWERS = frozenset({"Square", "Abs", "Pow"})
"""That of a product is the product of those of its factors."""

# The mean of what only goes through these is that of one factor times that of the other.
LINEAR = MEANS | {"Neg", "AddV2", "AddN", "Add", "Sub", "Identity", "Reshape", "Cast", "Mul", "RealDiv", "DivNoNan"}


def is_averaged(topology: Topology, op: int, target: int) -> bool:
    """Whether a loss contains the mean of the absolute, or squared, values of a difference; or that of a product, or of
    a cross-entropy."""
    path = topology.gradient(target).from_op(op)
    way = [topology.trace.ops[place].type for place in path]
    if way and (way[0] in PRODUCTS or way[0] == SOFTMAX_LOSS):
        after = list(dropwhile(_POWERS.__contains__, way[1:])) if way[0] in PRODUCTS else way[1:]
        return set(after) <= LINEAR and not MEANS.isdisjoint(way) and is_scaled_as_a_whole(topology, path)
    if any(scope in f"/{topology.trace.ops[op].name}" for scope in _OF_KERAS):
        return not MEANS.isdisjoint(way)
    tilted = {place for place in path[1:] if topology.trace.ops[place].type in LIMITS and _is_of(topology, place, op)}
    rest = {topology.trace.ops[place].type for place in path[1:] if place not in tilted}
    is_bent = bool(tilted) or not _BENT.isdisjoint(way)
    return rest <= _AVERAGED and is_bent and not MEANS.isdisjoint(way)


def _is_of(topology: Topology, place: int, op: int) -> bool:
    """Whether an op computes with nothing but what comes from another: the larger one of two multiples of an error, as
    in the loss of a quantile."""
    inputs = [edge.op for edge in topology.trace.ops[place].inputs if edge.op >= 0]
    return all(each == op or op in topology.made_by(each) for each in inputs)


def is_scaled_as_a_whole(topology: Topology, path: Sequence[int]) -> bool:
    """Whether further factors on a path are single numbers: others are weights of rows, or a mask."""
    for before, op in pairwise(path):
        each = topology.trace.ops[op]
        if each.type not in PRODUCTS:
            continue
        others = [shape_along(topology.trace, edge) for edge in each.inputs if edge.op not in (before, -1)]
        if any(shape != () for shape in (*others, *(given.shape for given in each.given))):
            return False
    return True
