"""Gradients that were passed to the recorder: it did not see a tape compute them, so no op can be named."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.record.schema import EAGER

# A loss that has grown by this factor since the first recorded step diverges, however much it varies from step to step.
_GROWN = 1e3


def is_given(topology: Topology, target: int) -> bool:
    """Whether the path of a target's gradients is not known: they were computed by hand, or the loss was eager."""
    trace = topology.trace
    if not 0 <= target < len(trace.targets):
        return False
    known = trace.targets[target]
    return known.by_hand or (known.op >= 0 and trace.ops[known.op].type == EAGER)


def has_grown(suspect: Suspect) -> float:
    """The loss divided by that of the first recorded step, if that is large; otherwise 0."""
    measured, target = suspect.measured, suspect.target
    began = measured.began.get(suspect.topology.trace.targets[target].name)
    now = measured.losses[target] if target < len(measured.losses) else None
    if not began or now is None or now != now:
        return 0.0
    factor = abs(now) / abs(began)
    return factor if factor > _GROWN else 0.0
