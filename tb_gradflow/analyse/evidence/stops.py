"""Paths that a `tf.stop_gradient` cuts."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.record.schema import Op

STOPS = ("StopGradient", "PreventGradient")


def keeps_value_alone(topology: Topology, stop: int) -> bool:
    """Whether a `stop_gradient` is that of `x + stop_gradient(q - x)`, which has the value of `q` and passes the
    gradient to `x`."""
    ops = topology.trace.ops
    inner = ops[stop].inputs[0].op if ops[stop].inputs else -1
    if inner < 0 or ops[inner].type != "Sub":
        return False
    taken = [edge.op for edge in ops[inner].inputs if edge.input == 1 and edge.op >= 0]
    sums = [user for user, _ in topology.consumers[stop] if ops[user].type in ("AddV2", "Add")]
    added = [edge.op for user in sums for edge in ops[user].inputs if edge.op >= 0 and edge.op != stop]
    return any(one == other or _reads_same(ops[one], ops[other]) for one in taken for other in added)


def _reads_same(one: Op, other: Op) -> bool:
    return one.reads is not None and one.reads == other.reads


def is_stopped_behind(suspect: Suspect) -> bool:
    """Whether every path from the cut onwards leads through a `stop_gradient`."""
    if suspect.op.type in STOPS:
        return False
    return suspect.culprit not in suspect.measured.once(("not stopped", suspect.target), lambda: _not_stopped(suspect))


def _not_stopped(suspect: Suspect) -> set[int]:
    """The ops from which a path without a `stop_gradient` leads to a place where a gradient arrives."""
    topology, arrives = suspect.topology, suspect.topology.gradient(suspect.target).hops
    stack = [op for op, hops in enumerate(arrives) if hops >= 0 and suspect.type_of(op) not in STOPS]
    found: set[int] = set()
    while stack:
        for source in topology.sources(stack.pop()):
            if source not in found:
                found.add(source)
                if suspect.type_of(source) not in STOPS:
                    stack.append(source)
    return found
