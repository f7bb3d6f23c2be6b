"""Values that are used more than once, and whose gradients add up to zero."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.graph.op_sets import SUMS_OF_TWO, shape_along

# Sums of a thousand float32 values that cancel leave about this share of their norm.
NOISE = 1e-4

# The remainder of a gradient that is the same for every class after a softmax, times a few inputs.
SUM_NOISE = 1e-5

# Their result is as large as their input.
_LINEAR = frozenset(
    {"AddV2", "Add", "Sub", "AddN", "BiasAdd", "Neg", "Identity", "Reshape", "ConcatV2", "Pack"}
    | {"Squeeze", "ExpandDims", "BroadcastTo", "Transpose", "Cast", "Tile"}
)

SCORING_STEPS = 8


def takers_of(suspect: Suspect, variable: int) -> list[int]:
    """The ops that use a variable's value and at which a gradient arrives."""
    topology, arrives = suspect.topology, suspect.topology.gradient(suspect.target).hops
    readers = [op for op in topology.readers[variable] if arrives[op] >= 0]
    return sorted({user for reader in readers for user in topology.onward(reader) if arrives[user] >= 0})


def cancelling_users(suspect: Suspect) -> list[int]:
    """The ops whose gradients for one value cancel; empty if there is no such value."""
    state, topology = suspect.state, suspect.topology
    if state.gradient is None:
        return []
    # An op that only another loss of the same step uses, or only an inner gradient, does not contribute to this one.
    # Neither does a comparison.
    arrives = topology.gradient(suspect.target).hops
    readers = [op for op in topology.readers[state.variable] if arrives[op] >= 0]
    users = sorted({user for reader in readers for user in topology.onward(reader) if arrives[user] >= 0})
    arriving = readers if len(readers) > 1 else users
    if len(users) > 1 and _is_noise(suspect, state.gradient.max_abs, arriving):
        return users
    if len(readers) == 1 and _leaves_nothing(suspect, readers[0], state.gradient.max_abs, users):
        return users
    after = suspect.measured.of_op(suspect.target, suspect.producer) if suspect.producer >= 0 else None
    users = sorted({user for user in topology.onward(suspect.producer) if arrives[user] >= 0}) if after else []
    linear = all(_is_linear(suspect, user) for user in users)
    if after is None:
        return []
    noise = (linear and _is_noise(suspect, after.max_abs, users)) or _leaves_nothing(
        suspect, suspect.producer, after.max_abs, users
    )
    return users if noise else []


def _is_linear(suspect: Suspect, user: int) -> bool:
    """Whether an op passes the whole gradient to the producer: sums do, and quotients to their numerator."""
    if suspect.type_of(user) in ("RealDiv", "Div"):
        return all(edge.input == 0 for edge in suspect.topology.trace.ops[user].inputs if edge.op == suspect.producer)
    return suspect.type_of(user) in _LINEAR


def _is_noise(suspect: Suspect, size: float, arriving: Sequence[int]) -> bool:
    """Whether `size` is negligible compared with each of the gradients that arrive, of which there are several. A
    gradient that is equally small does not count."""
    reports = [suspect.measured.of_op(suspect.target, op) for op in arriving]
    sizes = [0.0 if each is None else each.max_abs for each in reports]
    large = [each for each in sizes if each > NOISE * max(sizes)]
    return 0.0 not in sizes and len(large) > 1 and all(size <= NOISE * each for each in large)


def _leaves_nothing(suspect: Suspect, producer: int, size: float, users: Sequence[int]) -> bool:
    """Whether `size` is negligible compared with the gradient that one of the users passes to the producer unchanged,
    so that the others, which may not have been measured, must cancel it."""
    arrives = suspect.topology.gradient(suspect.target).hops
    if len([user for user in users if arrives[user] >= 0]) < 2:
        return False
    reports = [
        suspect.measured.of_op(suspect.target, user)
        for user in users
        if _hands_on_each_element(suspect, producer, user)
    ]
    return any(report is not None and report.max_abs and size <= NOISE * report.max_abs for report in reports)


def _hands_on_each_element(suspect: Suspect, producer: int, user: int) -> bool:
    """Whether an op adds the producer's result once to something else, as far as is known without a broadcast."""
    ops = suspect.topology.trace.ops
    taken = [edge for edge in ops[user].inputs if edge.op == producer]
    if len(taken) != 1 or ops[user].type not in SUMS_OF_TWO:
        return False
    given, made = shape_along(suspect.topology.trace, taken[0]), ops[user].outputs[0].shape
    if given is None or made is None:
        return True
    # Along an axis of unknown size the value may be broadcast, unless it has the same axis.
    return given == made if -1 in (*given, *made) else math.prod(given) == math.prod(made)


def where_ways_join(suspect: Suspect, users: Sequence[int]) -> int:
    """The first op that the paths from all of them lead through; -1 if there are no paths."""
    gradient = suspect.topology.gradient(suspect.target)
    ways = [gradient.from_op(user) for user in users]
    return next((op for op in ways[0] if all(op in way for way in ways)), -1) if ways else -1
