"""Gradients that the recorder was given: no tape computed them as far as it shows, and no op is to blame."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.suspects import Suspect
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


def has_grown(suspect: Suspect) -> float:
    """What the loss is times that of the first recorded step, where that is a lot; 0 otherwise."""
    measured, target = suspect.measured, suspect.target
    began = measured.began.get(suspect.topology.trace.targets[target].name)
    now = measured.losses[target] if target < len(measured.losses) else None
    if not began or now is None or now != now:
        return 0.0
    factor = abs(now) / abs(began)
    return factor if factor > _GROWN else 0.0
