"""The call of a layer whose result the program drops."""

from __future__ import annotations

from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.record.schema import Layer


def dropped_layer(topology: Topology, op: int, target: int) -> Layer | None:
    """The outermost layer around the op at which a path ends, if the loss depends on nothing that this layer computes,
    and the user's line that calls it is known. A number at the end seems to be a loss of the layer."""
    trace = topology.trace
    if op < 0 or target < 0 or all(tensor.shape == () for tensor in trace.ops[op].outputs):
        return None
    hops = topology.influence(target).hops
    used = [each.name for each, left in zip(trace.ops, hops, strict=True) if left >= 0]
    around = [each for each in trace.layers if trace.ops[op].name.startswith(f"{each.scope}/")]
    for layer in sorted(around, key=lambda each: len(each.scope)):
        if layer.source is not None and not any(name.startswith(f"{layer.scope}/") for name in used):
            return layer
    return None
