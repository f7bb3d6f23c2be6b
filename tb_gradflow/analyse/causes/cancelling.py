"""Gradients that arrive over several ways, or from many elements, and add up to nothing but rounding noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from tb_gradflow.analyse.causes.differences import difference_behind
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.op_sets import SOFTMAX
from tb_gradflow.analyse.graph.paths import walked

# Sums of a thousand float32 values that cancel leave about this share of their norm.
_NOISE = 1e-4

# What a softmax leaves of a gradient that is the same for every class, times a few inputs.
_SUM_NOISE = 1e-5

# A gradient that is larger than this is taken for what it is.
_FAINT = 1e-5

_TOTALS = frozenset({"Sum", "Mean", "SegmentSum", "UnsortedSegmentSum", "SegmentSumV2", "SegmentMean"})

# What these hand back is as large as what they get.
_LINEAR = frozenset(
    {"AddV2", "Add", "Sub", "AddN", "BiasAdd", "Neg", "Identity", "Reshape", "ConcatV2", "Pack"}
    | {"Squeeze", "ExpandDims", "BroadcastTo", "Transpose", "Cast", "Tile"}
)

_ADDING = frozenset({"AddV2", "Add", "Sub"})

_KEEPING = frozenset({"Reshape", "Squeeze", "ExpandDims", "Cast", "Identity", "BroadcastTo"})
_SHIFTS = frozenset({"BiasAdd", "AddV2", "Add"})
_SCORING = frozenset(
    {"Mul", "RealDiv", "Einsum", "BatchMatMulV2", "BatchMatMulV3", "MatMul", "Transpose", "AddV2", "Reshape", "Cast"}
    | {"Identity", "Sub"}
)
_SCORING_STEPS = 8


def shift_invariant_parameter(suspect: Suspect) -> Verdict | None:
    """An offset that what follows takes out again: in front of a batch normalisation, or in an attention's keys."""
    state, topology = suspect.state, suspect.topology
    if state.gradient is None:
        return None
    for reader in topology.readers[state.variable]:
        shift = _first_other_than(suspect, reader, _KEEPING)
        behind = suspect.measured.of_op(state.target, shift) if shift >= 0 else None
        if (
            behind is None
            or not behind.norm
            or suspect.type_of(shift) not in _SHIFTS
            or state.gradient.norm > _NOISE * behind.norm
        ):
            continue
        if takes_out(suspect, shift) >= 0:
            return Verdict("shift_invariant_parameter", "info", shift)
    return None


def takes_out(suspect: Suspect, shift: int) -> int:
    """What takes an offset out again that is added at `shift`: an op of the batch normalisation behind it, the softmax
    that follows, or a difference of its elements; -1 if none is near."""
    if _is_normalised(suspect, shift):
        return suspect.topology.onward(shift)[0]
    softmax = _softmax_behind(suspect, shift)
    return softmax if softmax >= 0 else difference_behind(suspect, shift)


def offset_on_both_sides(suspect: Suspect) -> Verdict | None:
    """The last bias of a network whose outputs for two inputs are compared: the difference does not depend on it."""
    users = _cancelling_users(suspect)
    join = _where_ways_join(suspect, users)
    if join < 0 or suspect.type_of(join) != "Sub":
        return None
    sums = all(suspect.type_of(user) in _SHIFTS and _adds_to_product(suspect, user) for user in users)
    return Verdict("shift_invariant_parameter", "info", join) if sums else None


def equal_sides(suspect: Suspect) -> Verdict | None:
    """A value is compared with what was computed from the same weights, and both are equal in every element: two views
    of which neither was changed.

    No forward value says so, and the gradient does: that of a square is zero all over only where the difference is.
    """
    incoming = suspect.measured.of_op(suspect.target, suspect.culprit)
    if not suspect.exact or incoming is None or incoming.zero_fraction > 0 or not incoming.max_abs:
        return None
    difference = suspect.culprit if suspect.op.type == "SquaredDifference" else -1
    if suspect.op.type in ("Square", "Abs") and suspect.type_of(suspect.producer) == "Sub":
        difference = suspect.producer
    topology = suspect.topology
    sides = [edge.op for edge in topology.trace.ops[difference].inputs] if difference >= 0 else []
    readers = topology.readers[suspect.state.variable]
    gets = topology.gradient(suspect.target).hops
    both = len(set(sides)) == 2 and all(
        side >= 0 and gets[side] >= 0 and not (topology.made_by(side) | {side}).isdisjoint(readers) for side in sides
    )
    return Verdict("gradient_cancellation", "warning") if both else None


def same_on_both_sides(suspect: Suspect) -> Verdict | None:
    """A value is compared with what the same network makes of the same input: nothing in front of the difference, or
    the ratio, learns. An offset that both sides contain is no such thing, for its weights do learn.

    The evidence is that the gradient comes back over both ways, in the same size to each layer.
    """
    users = _takers(suspect, suspect.state.variable)
    join = _where_ways_join(suspect, users) if len(users) == 2 else -1
    if join < 0 or suspect.type_of(join) not in ("Sub", "RealDiv"):
        return None
    same = suspect.measured.once(("same sides", suspect.target, join), lambda: _is_mirrored(suspect, join))
    return Verdict("gradient_cancellation", "error", join) if same else None


def _is_mirrored(suspect: Suspect, join: int) -> bool:
    """Whether every variable in front of the op is taken on two ways, at which gradients of the same size arrive, and
    gets nothing; a weight of a product among them."""
    topology, measured, target = suspect.topology, suspect.measured, suspect.target
    before, weights = topology.made_by(join), 0
    for entry in topology.trace.variable_gradients:
        if entry.target != target or before.isdisjoint(topology.readers[entry.variable]):
            continue
        gradient, takers = measured.of_variable(entry), _takers(suspect, entry.variable)
        ways = [report for op in takers if (report := measured.of_op(target, op)) is not None]
        if gradient is None or len(ways) != 2 or not ways[0].max_abs or gradient.max_abs > _NOISE * ways[0].max_abs:
            return False
        if any(abs(a - b) > _NOISE * a for a, b in ((ways[0].norm, ways[1].norm), (ways[0].max_abs, ways[1].max_abs))):
            return False
        weights += any(suspect.type_of(op) in PRODUCTS for op in takers)
    return weights > 0


def _takers(suspect: Suspect, variable: int) -> list[int]:
    """The ops that take a variable's value and that a gradient arrives at."""
    topology, arrives = suspect.topology, suspect.topology.gradient(suspect.target).hops
    readers = [op for op in topology.readers[variable] if arrives[op] >= 0]
    return sorted({user for reader in readers for user in topology.onward(reader) if arrives[user] >= 0})


def gradient_cancellation(suspect: Suspect) -> Verdict | None:
    """A value is used more than once, a gradient comes back from each use, and together they are nothing.

    It is the variable's value, or one that is computed from it. The op to name is the one at which the ways join.
    """
    users = _cancelling_users(suspect)
    join = _where_ways_join(suspect, users)
    return Verdict("gradient_cancellation", "warning", join) if join >= 0 else None


def _cancelling_users(suspect: Suspect) -> list[int]:
    """The ops whose gradients for one value cancel; empty if there is no such value."""
    state, topology = suspect.state, suspect.topology
    if state.gradient is None:
        return []
    # What another loss of the same step reads, or an inner gradient alone, has no part in this one.
    arrives = topology.gradient(suspect.target).hops
    readers = [op for op in topology.readers[state.variable] if topology.onward(op) and arrives[op] >= 0]
    users = sorted({user for reader in readers for user in topology.onward(reader) if arrives[user] >= 0})
    arriving = readers if len(readers) > 1 else users
    if len(users) > 1 and _is_noise(suspect, state.gradient.max_abs, arriving):
        return users
    if len(readers) == 1 and _leaves_nothing(suspect, readers[0], state.gradient.max_abs, users):
        return users
    after = suspect.measured.of_op(suspect.target, suspect.producer) if suspect.producer >= 0 else None
    users = sorted(set(topology.onward(suspect.producer))) if after is not None else []
    linear = all(_is_linear(suspect, user) for user in users)
    if after is None:
        return []
    noise = (linear and _is_noise(suspect, after.max_abs, users)) or _leaves_nothing(
        suspect, suspect.producer, after.max_abs, users
    )
    return users if noise else []


def _is_linear(suspect: Suspect, user: int) -> bool:
    """Whether an op hands on all of a gradient to the producer: sums do, and quotients to what is divided."""
    if suspect.type_of(user) in ("RealDiv", "Div"):
        return all(edge.input == 0 for edge in suspect.topology.trace.ops[user].inputs if edge.op == suspect.producer)
    return suspect.type_of(user) in _LINEAR


def _is_noise(suspect: Suspect, size: float, arriving: Sequence[int]) -> bool:
    """Whether `size` is nothing beside every one of the gradients that arrive, of which there are several. What is
    itself as small does not count."""
    reports = [suspect.measured.of_op(suspect.target, op) for op in arriving]
    sizes = [0.0 if each is None else each.max_abs for each in reports]
    large = [each for each in sizes if each > _NOISE * max(sizes)]
    return 0.0 not in sizes and len(large) > 1 and all(size <= _NOISE * each for each in large)


def _leaves_nothing(suspect: Suspect, producer: int, size: float, users: Sequence[int]) -> bool:
    """Whether `size` is nothing beside what one of the users hands on to the producer as it is, so that the others,
    which may not have been measured, must take it away again."""
    arrives = suspect.topology.gradient(suspect.target).hops
    if len([user for user in users if arrives[user] >= 0]) < 2:
        return False
    reports = [
        suspect.measured.of_op(suspect.target, user)
        for user in users
        if _hands_on_each_element(suspect, producer, user)
    ]
    return any(report is not None and report.max_abs and size <= _NOISE * report.max_abs for report in reports)


def _hands_on_each_element(suspect: Suspect, producer: int, user: int) -> bool:
    """Whether an op adds the producer's result once to something else, as far as is known without a broadcast."""
    ops = suspect.topology.trace.ops
    taken = [edge for edge in ops[user].inputs if edge.op == producer]
    if len(taken) != 1 or ops[user].type not in _ADDING:
        return False
    given, made = ops[producer].outputs[taken[0].output].shape, ops[user].outputs[0].shape
    if given is None or made is None or None in (*given, *made):
        return True
    return math.prod(size or 1 for size in given) == math.prod(size or 1 for size in made)


def _where_ways_join(suspect: Suspect, users: Sequence[int]) -> int:
    """The first op that the ways from all of them lead through; -1 if there are no ways."""
    gradient = suspect.topology.gradient(suspect.target)
    ways = [gradient.from_op(user) for user in users]
    return next((op for op in ways[0] if all(op in way for way in ways)), -1) if ways else -1


def _adds_to_product(suspect: Suspect, op: int) -> bool:
    """Whether one of its summands is a product, as in a layer that adds its bias."""
    sources = suspect.topology.sources
    made_by = walked(sources(op), lambda place: sources(place) if suspect.type_of(place) in _KEEPING else ())
    return any(suspect.type_of(place) in PRODUCTS for place in made_by)


def normalised_by_hand(suspect: Suspect) -> Verdict | None:
    """A value is divided by its own sum, or its own mean is taken from it, and every element of the result gets the
    same gradient: what comes back over the two ways cancels."""
    state, topology = suspect.state, suspect.topology
    if state.gradient is None or not 0 < state.gradient.max_abs <= _FAINT:
        return None
    places = suspect.measured.once(("normalised", suspect.target), lambda: _normalised_in_vain(suspect))
    for place, join in places:
        if not (topology.made_by(place) | {place}).isdisjoint(topology.readers[state.variable]):
            return Verdict("normalised_then_summed", "error", join)
    return None


def _normalised_in_vain(suspect: Suspect) -> list[tuple[int, int]]:
    """The ops whose value is normalised and whose gradients cancel, and where the normalised value is made."""
    found = []
    for op in range(len(suspect.topology.trace.ops)):
        users = suspect.topology.onward(op)
        after = suspect.measured.of_op(suspect.target, op) if len(users) > 1 else None
        if after is not None and _two_cancel(suspect, after.max_abs, users):
            join = _normaliser_of(suspect, op, users)
            found.extend([(op, join)] if join >= 0 else [])
    return found


def _two_cancel(suspect: Suspect, size: float, users: Sequence[int]) -> bool:
    sizes = sorted(report.max_abs for op in users if (report := suspect.measured.of_op(suspect.target, op)) is not None)
    return len(sizes) > 1 and size <= _SUM_NOISE * sizes[-2]


def _normaliser_of(suspect: Suspect, op: int, users: Sequence[int]) -> int:
    """Where a sum or mean of a value meets the value again; -1 if it does not."""
    topology = suspect.topology
    beside = {op, *users}
    for total in (user for user in users if suspect.type_of(user) in _TOTALS):
        way = topology.gradient(suspect.target).from_op(total)[1:_SCORING_STEPS]
        for before, place in pairwise((total, *way)):
            others = {edge.op for edge in topology.trace.ops[place].inputs} - {before}
            if others & (beside - {total}):
                return place
    return -1


def normalised_then_summed(suspect: Suspect) -> Verdict | None:
    """The loss sums what a softmax made to sum to one: every element gets the same gradient, and they cancel."""
    state, topology = suspect.state, suspect.topology
    if state.gradient is None:
        return None
    even = suspect.measured.once(("evenly met", suspect.target), lambda: _evenly_met(suspect))
    size, op = max((even[reader] for reader in topology.readers[state.variable]), default=(0.0, -1))
    return (
        Verdict("normalised_then_summed", "error", op) if size and state.gradient.max_abs <= _SUM_NOISE * size else None
    )


def _evenly_met(suspect: Suspect) -> list[tuple[float, int]]:
    """For each op, of the softmaxes that its value flows into and at which the same gradient arrives for every
    element, the one where that is largest, and how large it is there."""
    topology, measured = suspect.topology, suspect.measured
    found = [(0.0, -1)] * len(topology.trace.ops)
    for op in topology.by_type.get("Softmax", ()):
        report = measured.of_op(suspect.target, op)
        if report is not None and report.zero_fraction == 0 and report.mean_abs >= report.max_abs * (1 - 1e-5):
            found[op] = (report.max_abs, op)
    for size, op in sorted((each for each in found if each[0]), reverse=True):
        stack = [op]
        while stack:
            for source in topology.sources(stack.pop()):
                if found[source] < (size, op):
                    found[source] = (size, op)
                    stack.append(source)
    return found


def _first_other_than(suspect: Suspect, op: int, types: frozenset[str]) -> int:
    """The first op behind `op` of another type, as long as each has one user; -1 if the way forks."""
    users = suspect.topology.onward(op)
    while len(users) == 1:
        if suspect.type_of(users[0]) not in types:
            return users[0]
        users = suspect.topology.onward(users[0])
    return -1


def _is_normalised(suspect: Suspect, op: int) -> bool:
    """Whether a batch normalisation is all that uses the op."""
    trace = suspect.topology.trace
    scopes = suspect.measured.once(
        "batch normalisations",
        lambda: tuple(layer.scope + "/" for layer in trace.layers if "BatchNormalization" in layer.type),
    )
    users = suspect.topology.onward(op)
    return bool(users) and all(
        trace.ops[user].type.startswith("FusedBatchNorm") or trace.ops[user].name.startswith(scopes) for user in users
    )


def _softmax_behind(suspect: Suspect, op: int) -> int:
    """The softmax that scores end in; -1 if something else comes first, or the way forks."""
    for _ in range(_SCORING_STEPS):
        users = suspect.topology.onward(op)
        if len(users) != 1:
            return -1
        op = users[0]
        if suspect.type_of(op) in SOFTMAX:
            return op
        if suspect.type_of(op) not in _SCORING:
            return -1
    return -1
