"""The ops of `tf.stop_gradient`, and which of them keep a value alone."""

from __future__ import annotations

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
    return any(one == other or reads_same(ops[one], ops[other]) for one in taken for other in added)


def reads_same(one: Op, other: Op) -> bool:
    """Whether two ops read the same variable."""
    return one.reads is not None and one.reads == other.reads
