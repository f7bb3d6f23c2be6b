"""Which cause it is when `tape.gradient` raised an error at an op on the path."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict


def raised_on_the_way(suspect: Suspect) -> Verdict | None:
    """Requesting the gradient raises at an op on the path, or on one of several: the tape asks it before whatever lies
    between it and the variable, and what cuts there is not got to."""
    topology, entry = suspect.topology, suspect.state.entry
    if entry is None or entry.outcome != "error":
        return None
    reached = topology.reached_from(topology.readers[suspect.state.variable])
    for crossing in topology.raising_crossings(suspect.target):
        if crossing.producer in reached:
            op = topology.trace.ops[crossing.consumer]
            missing = "second_order_missing" if op.backward else "no_gradient_registered"
            own = op.custom_gradient and crossing.edge.passes == "error"
            return Verdict("custom_gradient_wrong" if own else missing, "error", crossing.consumer)
    return None
