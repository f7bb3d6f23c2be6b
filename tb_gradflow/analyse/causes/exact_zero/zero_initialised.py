"""Which cause it is when a factor of a product started at zero."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.bodies import unrecorded_before
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import FLAT_AT_ZERO, PRODUCTS, zero_factors, zero_values
from tb_gradflow.record.report import Severity


def zero_initialised_unseen(suspect: Suspect) -> Verdict | None:
    """Every path through the part that was not recorded multiplies by a value that is zero because variables started at
    zero. If one of these variables learns, this one will, from the next step on.
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
    every = frozenset[int]().union(*met.values())
    if any(suspect.measured.learns(factor) for factor in every):
        return Verdict("zero_init_by_design", "info", min(met))
    return Verdict("zero_init_product", _severity(suspect, every), min(met))


# A weight that rises from zero on a schedule may wait for an epoch or two.
_LONG = 64


def _severity(suspect: Suspect, factors: frozenset[int]) -> Severity:
    """A variable that is not trained may be a weight that a callback or a schedule raises: information, until it has
    been zero for a while."""
    if any(suspect.topology.trace.variables[factor].trainable for factor in factors):
        return "error"
    still = suspect.measured.unchanged
    return "warning" if all(still.get(factor, 0) >= _LONG for factor in factors) else "info"


def zero_initialised(suspect: Suspect) -> Verdict | None:
    """A product with a value that is zero because variables started at zero; or a function that is flat at such a zero.
    If one of these variables learns, this one will, from the next step on.
    """
    factors = zero_factors(suspect)
    at_goal = suspect.op.type in FLAT_AT_ZERO and suspect.measured.is_learned(suspect.target)
    if not factors or at_goal:
        return None
    if any(suspect.measured.learns(factor) for factor in factors):
        return (
            Verdict("zero_init_product", "error")
            if has_units_alike(suspect)
            else Verdict("zero_init_by_design", "info")
        )
    return Verdict("zero_init_product", _severity(suspect, factors))


# Each of their output elements is computed from one input element.
_ONE_BY_ONE = frozenset({"Sigmoid", "Tanh", "Relu", "Elu", "Selu", "LeakyRelu", "Softplus", "Identity", "Cast", "Erf"})


def has_units_alike(suspect: Suspect) -> bool:
    """Whether the product multiplies its zeros by values that are equal for every unit, because the layer before it
    started with zeros as well: all of its units then learn the same and stay equal."""
    zeros, op = zero_values(suspect.measured), suspect.producer
    while op >= 0 and zeros[op] is None and suspect.type_of(op) in _ONE_BY_ONE:
        op = suspect.topology.first_input(op)
    kernels = suspect.topology.trace.variables
    made_of = zeros[op] if op >= 0 and op != suspect.producer else None
    return made_of is not None and any(len(kernels[each].shape) > 1 for each in made_of)
