"""Samples that are computed from the mean of their distribution, as the differences from that mean show."""

from __future__ import annotations

from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.record.schema import Op


def sample_in(topology: Topology, difference: int) -> int:
    """Which input of a difference is a sample around the other: it is computed from that input, or from a second read
    of the same variable, and from something else, its noise. -1 if neither is."""
    ops = topology.trace.ops
    inputs = sorted(ops[difference].inputs, key=lambda edge: edge.input) if difference >= 0 else []
    places = [edge.op for edge in inputs]
    if difference < 0 or ops[difference].type != "Sub" or len(places) != 2 or min(places) < 0:
        return -1
    for which in (0, 1):
        mean = places[1 - which]
        made = topology.made_by(places[which]) | {places[which]}
        reads = ops[mean].reads
        is_made_of_it = mean in made or (reads is not None and any(ops[op].reads == reads for op in made))
        noise = made - topology.made_by(mean) - {mean}
        if is_made_of_it and any(_enters(ops[op]) and (reads is None or ops[op].reads != reads) for op in noise):
            return which
    return -1


def _enters(op: Op) -> bool:
    """Whether a value enters there: of a variable, a random number, or a tensor from outside of the step."""
    from_outside = op.type != "Const" and (not op.inputs or any(edge.op < 0 for edge in op.inputs))
    return op.reads is not None or "Random" in op.type or from_outside or bool(op.given)
