"""Which cause it is when `tape.gradient` raised an error at an op on the path."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.discrete import SAMPLING
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.step.not_computed import inverting_ops


def raised_on_the_way(suspect: Suspect) -> Verdict | None:
    """Requesting the gradient raises at an op on the path, or on one of several: the tape reaches it before the ops
    between it and the variable, so a cut among these has no effect."""
    topology, entry = suspect.topology, suspect.state.entry
    if entry is None or entry.outcome != "error":
        return None
    reached = topology.reached_from(topology.readers[suspect.state.variable])
    for crossing in topology.raising_crossings(suspect.target):
        if crossing.producer in reached:
            op = topology.trace.ops[crossing.consumer]
            missing = "second_order_missing" if op.backward else "no_gradient_registered"
            missing = "nondiff_sampling" if op.type in SAMPLING else missing
            if crossing.edge.passes == "error":
                singular = crossing.consumer in inverting_ops(topology, suspect.target)
                missing = "degenerate_decomposition" if singular else "not_measured"
                missing = "custom_gradient_wrong" if op.custom_gradient else missing
            return Verdict(missing, "error", crossing.consumer)
    return None
