"""Which gradients XLA has refused to compile, where running the step failed at that."""

from __future__ import annotations

from tb_gradflow.analyse.topology import Topology


def is_refused_by_xla(topology: Topology, variable: int, target: int) -> bool:
    """Whether the variable's gradient would have to come through a function that XLA was to compile, or through the
    step that it was to compile as a whole, and it could not."""
    if "XLA" not in topology.trace.failure or not topology.receives(variable, target):
        return False
    compiled = {place for place, op in enumerate(topology.trace.ops) if op.compiled}
    if not compiled:
        return True
    arrives = topology.gradient(target).hops
    queue = [reader for reader in topology.readers[variable] if arrives[reader] >= 0]
    seen = set(queue)
    for op in queue:  # grows while it is walked
        ahead = {user for user in topology.onward(op) if arrives[user] >= 0} - seen
        seen |= ahead
        queue.extend(ahead)
    return not compiled.isdisjoint(seen)


def first_compiled(topology: Topology) -> int:
    """The first op inside a function that XLA compiles; -1 if there is none."""
    return next((place for place, op in enumerate(topology.trace.ops) if op.compiled), -1)
