"""Gradients that arrive over several ways, or from many elements, and add up to nothing but rounding noise."""

from __future__ import annotations

from tb_gradflow.analyse.evidence import Suspect, Verdict

# Sums of a thousand float32 values that cancel leave about this share of their norm.
_NOISE = 1e-4

# What a softmax leaves of a gradient that is the same for every class, times a few inputs.
_SUM_NOISE = 1e-5

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
        if _is_normalised(suspect, shift) or _ends_in_softmax(suspect, shift):
            return Verdict("shift_invariant_parameter", "info", shift)
    return None


def gradient_cancellation(suspect: Suspect) -> Verdict | None:
    """The variable is read more than once, each time with a gradient, and the gradients cancel.

    A subtraction among the readers is the op to name: `z - mean`, where `z` was made from the mean.
    """
    state, topology = suspect.state, suspect.topology
    readers = [op for op in topology.readers[state.variable] if topology.onward(op)]
    users = sorted({user for reader in readers for user in topology.onward(reader)})
    if len(users) < 2 or state.gradient is None:
        return None
    arriving = [suspect.measured.of_op(state.target, op) for op in (readers if len(readers) > 1 else users)]
    if any(each is None or state.gradient.max_abs > _NOISE * each.max_abs or not each.max_abs for each in arriving):
        return None
    subtractions = [user for user in users if suspect.type_of(user) == "Sub"]
    return Verdict("gradient_cancellation", "warning", (subtractions or users)[0])


def normalised_then_summed(suspect: Suspect) -> Verdict | None:
    """The loss sums what a softmax made to sum to one: every element gets the same gradient, and they cancel."""
    state, topology = suspect.state, suspect.topology
    if state.gradient is None:
        return None
    summed = [op for op in topology.by_type.get("Softmax", ()) if _sums_it(suspect, op, state.gradient.max_abs)]
    if not summed:
        return None
    reached = topology.reached_from(topology.readers[state.variable])
    return next((Verdict("normalised_then_summed", "error", op) for op in summed if op in reached), None)


def _sums_it(suspect: Suspect, op: int, left: float) -> bool:
    """Whether what arrives at the op is the same for every element, and next to it `left` is noise."""
    incoming = suspect.measured.of_op(suspect.target, op)
    if incoming is None or not incoming.max_abs or left > _SUM_NOISE * incoming.max_abs:
        return False
    return incoming.zero_fraction == 0 and incoming.mean_abs >= incoming.max_abs * (1 - 1e-5)


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
    scopes = tuple(layer.scope + "/" for layer in trace.layers if "BatchNormalization" in layer.type)
    users = suspect.topology.onward(op)
    return bool(users) and all(
        trace.ops[user].type.startswith("FusedBatchNorm") or trace.ops[user].name.startswith(scopes) for user in users
    )


def _ends_in_softmax(suspect: Suspect, op: int) -> bool:
    for _ in range(_SCORING_STEPS):
        users = suspect.topology.onward(op)
        if len(users) != 1:
            return False
        op = users[0]
        if suspect.type_of(op) == "Softmax":
            return True
        if suspect.type_of(op) not in _SCORING:
            return False
    return False
