"""Which cause it is when a factor of a product began at zero."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.bodies import unrecorded_before
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import FLAT_AT_ZERO, PRODUCTS, zero_values


def zero_initialised_unseen(suspect: Suspect) -> Verdict | None:
    """Every path through the part that was not recorded multiplies by what is zero because variables began as zeros.

    If one of these variables learns, this one will, from the next step on.
    """
    inside = set(unrecorded_before(suspect))
    zeros = zero_values(suspect.measured) if inside else []
    starts = inside.intersection(suspect.topology.readers[suspect.state.variable])
    reached, queue, met = set(starts), sorted(starts), dict[int, frozenset[int]]()
    for op in queue:  # grows while it is walked
        for user in suspect.topology.onward(op):
            if user not in inside or user in reached or user in met:
                continue
            made_of = [zeros[edge.op] for edge in suspect.topology.trace.ops[user].inputs if edge.op not in (op, -1)]
            factors = [zero - {suspect.state.variable} for zero in made_of if zero]
            if suspect.type_of(user) in PRODUCTS and any(factors):
                met[user] = frozenset[int]().union(*factors)
            else:
                reached.add(user)
                queue.append(user)
    if not met or suspect.producer in reached:
        return None
    by_design = any(suspect.measured.learns(factor) for factors in met.values() for factor in factors)
    if by_design:
        return Verdict("zero_init_by_design", "info", min(met))
    return Verdict("zero_init_product", "error", min(met))


_FUSED_NORMALISERS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})


def zero_initialised(suspect: Suspect) -> Verdict | None:
    """A product with what is zero because variables began as zeros; or a flat spot at such a zero.

    If one of these variables learns, this one will, from the next step on.
    """
    zeros = zero_values(suspect.measured)
    if suspect.op.type in PRODUCTS:
        places = [edge.op for edge in suspect.op.inputs if edge.op >= 0 and edge.op != suspect.producer]
    elif suspect.op.type in FLAT_AT_ZERO:
        places = [suspect.producer] if suspect.producer >= 0 else []
    elif suspect.op.type in _FUSED_NORMALISERS:
        places = [edge.op for edge in suspect.op.inputs if edge.input == 1]
    else:
        return None
    found = [zero for place in places if (zero := zeros[place]) is not None]
    at_goal = suspect.op.type in FLAT_AT_ZERO and suspect.measured.is_learned(suspect.target)
    if not found or at_goal:
        return None
    factors = found[0].union(*found) - {suspect.state.variable} or found[0]
    if any(suspect.measured.learns(factor) for factor in factors):
        return Verdict("zero_init_by_design", "info")
    return Verdict("zero_init_product", "error")
