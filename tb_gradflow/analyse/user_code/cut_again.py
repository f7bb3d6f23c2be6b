"""Edits that are in vain, because the gradient is zero again in front of the lines that they replace."""

from __future__ import annotations

from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.words.names import Group, source_of
from tb_gradflow.record.report import Edit

_FLAT = frozenset({"Sign"})
"""Passes a gradient, of zero. An edit reaches behind what passes none, but takes a value with a gradient as it is."""


def is_cut_again(group: Group, edit: Edit) -> bool:
    """Whether such an op in another line lies on each path from the op that is blamed to the variables."""
    topology = group.suspect.topology
    if group.culprit < 0 or not any(topology.by_type.get(kind) for kind in _FLAT):
        return False
    readers = {op for variable in group.variables for op in topology.readers[variable]}
    return readers.isdisjoint(walked([group.culprit], lambda op: _behind(topology, op, edit)))


def _behind(topology: Topology, op: int, edit: Edit) -> list[int]:
    source = source_of(topology.trace, op)
    is_kept = source is not None and not edit.line <= source.line <= edit.end_line
    is_end = is_kept and topology.trace.ops[op].type in _FLAT
    return [] if is_end else [edge.op for edge in topology.trace.ops[op].inputs]
