"""Gradients that the recorder was given, and no tape has taken as far as it shows: no op is to blame for them."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.record.schema import EAGER

# A loss that has grown by this factor since the first recorded step has left, whatever it does from step to step.
_GROWN = 1e3


def is_given(topology: Topology, target: int) -> bool:
    """Whether the way of a target's gradients is not known: they were computed by hand, or the loss was eager."""
    trace = topology.trace
    if not 0 <= target < len(trace.targets):
        return False
    known = trace.targets[target]
    return known.by_hand or (known.op >= 0 and trace.ops[known.op].type == EAGER)


def given_zero(suspect: Suspect) -> Verdict | None:
    """Nothing but zeros was given. Finite differences with a small step give them where a function is made of steps."""
    return Verdict("zero_gradient", "info" if suspect.measured.is_learned(suspect.target) else "warning", NO_OP)


def given_nonfinite(suspect: Suspect) -> Verdict | None:
    """NaN or infinity was given."""
    return Verdict("not_finite", "error", NO_OP)


def given_huge(suspect: Suspect) -> Verdict | None:
    """A huge gradient was given: of a training that diverges, if its loss has grown."""
    return Verdict("exploding_recurrence", "warning", NO_OP)


def diverging(suspect: Suspect) -> Verdict | None:
    """A gradient of any size was given, and the loss has grown: a rate that is too high may leap to where the loss is
    flat."""
    return Verdict("exploding_recurrence", "warning", NO_OP) if has_grown(suspect) else None


def given_tiny(suspect: Suspect) -> Verdict | None:
    """Next to nothing was given."""
    return Verdict("vanishing_depth", "info" if suspect.measured.is_learned(suspect.target) else "warning", NO_OP)


def has_grown(suspect: Suspect) -> float:
    """What the loss is times that of the first recorded step, where that is a lot; 0 otherwise."""
    measured, target = suspect.measured, suspect.target
    began = measured.began.get(suspect.topology.trace.targets[target].name)
    now = measured.losses[target] if target < len(measured.losses) else None
    if not began or now is None or now != now:
        return 0.0
    factor = abs(now) / abs(began)
    return factor if factor > _GROWN else 0.0
