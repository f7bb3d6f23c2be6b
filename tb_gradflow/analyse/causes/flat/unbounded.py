"""Values that are clipped like probabilities, though nothing keeps them between 0 and 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.graph.op_sets import COPIES, OFFSETS, constant_of
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology

# The usual distance at which probabilities are kept from zero and one, so that their logarithm is finite.
_MARGIN = 1e-2

_OF_KERAS = "binary_crossentropy/clip_by_value"
"""The scope in which a loss of Keras clips. Of the upper limit only Keras 3 makes a constant."""

_SHAPED = COPIES | {"Reshape", "Squeeze", "ExpandDims", "Cast"}
_PRODUCTS = frozenset({"MatMul", "BatchMatMulV2", "Einsum", "Conv1D", "Conv2D", "Conv3D"})
_BOUNDED = frozenset({"Softmax", "Sigmoid"})
_NEAR = 6


@dataclass(frozen=True, slots=True)
class Unbounded:
    """Unbounded values that are clipped like probabilities.

    Attributes:
        clip: The limit that they meet first.
        last: The other one.
        given: The input of the first.
        layer: What makes them.
    """

    clip: int
    last: int
    given: int
    layer: int


def unbounded_in(suspect: Suspect) -> list[Unbounded]:
    """Those that are partly clipped in this step; in a binary cross-entropy of Keras also others, which may be."""
    topology, target = suspect.topology, suspect.target
    return suspect.measured.once(
        ("unbounded", target), lambda: [each for each in _unbounded(topology) if _cuts(suspect, each)]
    )


def _cuts(suspect: Suspect, found: Unbounded) -> bool:
    arriving = suspect.measured.of_op(suspect.target, found.last)
    left = suspect.measured.of_op(suspect.target, found.given)
    if arriving is None or left is None or arriving.zero_fraction == 1 or left.zero_fraction == 1:
        return False
    is_meant = _OF_KERAS in suspect.topology.trace.ops[found.clip].name
    return is_meant or arriving.zero_fraction < left.zero_fraction


def _unbounded(topology: Topology) -> Iterator[Unbounded]:
    ops = topology.trace.ops
    for last in (place for kind in ("Maximum", "Minimum") for place in topology.by_type.get(kind, ())):
        first = _only_input(topology, last)
        if first < 0 or {ops[first].type, ops[last].type} != {"Maximum", "Minimum"}:
            continue
        low, high = (last, first) if ops[last].type == "Maximum" else (first, last)
        given = _only_input(topology, first)
        if given >= 0 and _is_margin(_limit(topology, low)) and _is_near_one(topology, high):
            layer = _linear_layer(topology, given)
            if layer >= 0 and _goes_into_a_logarithm(topology, last) and not _divides(topology, last):
                yield Unbounded(first, last, given, layer)


def _only_input(topology: Topology, op: int) -> int:
    inputs = [edge.op for edge in topology.trace.ops[op].inputs]
    return inputs[0] if len(inputs) == 1 else -1


def _limit(topology: Topology, op: int) -> float | None:
    each = topology.trace.ops[op]
    return next((value for place in (0, 1) if (value := constant_of(each, place)) is not None), None)


def _is_near_one(topology: Topology, op: int) -> bool:
    limit = _limit(topology, op)
    return _OF_KERAS in topology.trace.ops[op].name if limit is None else _is_margin(1.0 - limit)


def _is_margin(distance: float | None) -> bool:
    return distance is not None and 0 <= distance <= _MARGIN


def _linear_layer(topology: Topology, given: int) -> int:
    """The product with a variable, or the sum of a product and a variable, that computes a value; -1 if another op
    does. A categorical loss divides the values by their sum first; a ReLU bounds them on one side only.
    """
    ops, op = topology.trace.ops, given
    if ops[op].type == "RealDiv" and len(ops[op].inputs) == 2:
        above, below = (edge.op for edge in ops[op].inputs)
        if below >= 0 and ops[below].type == "Sum" and [edge.op for edge in ops[below].inputs] == [above]:
            op = above
    while op >= 0 and ops[op].type in _SHAPED | {"Relu"}:
        op = _only_input(topology, op)
    if _is_product(topology, op) and _is_with_variable(topology, op):
        return op
    if op >= 0 and ops[op].type in OFFSETS and _is_with_variable(topology, op):
        parts = [_behind_shapes(topology, edge.op) for edge in ops[op].inputs]
        if any(_is_product(topology, part) for part in parts):
            return op
    return -1


def _is_product(topology: Topology, op: int) -> bool:
    """Probabilities that a matrix of probabilities computes from the output of a softmax have bounds."""
    ops = topology.trace.ops
    if op < 0 or ops[op].type not in _PRODUCTS:
        return False
    factors = [_behind_shapes(topology, edge.op) for edge in ops[op].inputs]
    return not any(factor >= 0 and ops[factor].type in _BOUNDED for factor in factors)


def _is_with_variable(topology: Topology, op: int) -> bool:
    ops = topology.trace.ops
    read = [_behind_shapes(topology, edge.op) for edge in ops[op].inputs]
    return any(each >= 0 and ops[each].reads is not None for each in read)


def _behind_shapes(topology: Topology, op: int) -> int:
    ops = topology.trace.ops
    while op >= 0 and ops[op].reads is None and ops[op].type in _SHAPED:
        op = _only_input(topology, op)
    return op


def _divides(topology: Topology, op: int) -> bool:
    """Whether something is divided by a value, or by its square, as by the standard deviation of a density. Nothing is
    divided by a probability."""
    ops = topology.trace.ops

    def powers(place: int) -> list[int]:
        return [user for user in topology.onward(place) if ops[user].type in _SHAPED | {"Square", "Pow"}]

    near = set(walked([op], powers)) | {op}
    users = [user for place in near for user in topology.onward(place) if ops[user].type in ("RealDiv", "Div")]
    return any(edge.input == 1 and edge.op in near for user in users for edge in ops[user].inputs)


def _goes_into_a_logarithm(topology: Topology, op: int) -> bool:
    near = islice(walked([op], topology.onward), _NEAR)
    return any(topology.trace.ops[each].type == "Log" for each in near)
