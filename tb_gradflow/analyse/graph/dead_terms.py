"""Terms that are computed but belong to no loss."""

from __future__ import annotations

import re

from tb_gradflow.analyse.graph.op_sets import is_float
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology

_NAMED = re.compile(r"\s*[\w.]+\s*=[^=]")


def term_in_vain(topology: Topology, variable: int) -> int:
    """The last scalar that is computed from a variable and data, that would give the variable a gradient, and that no
    differentiated target depends on; -1 if there is none. The user's line must name it: a number that is only printed,
    summarised or added to a metric is no term.
    """
    trace = topology.trace
    influences = [topology.influence(target).hops for target in range(len(trace.targets))]

    def is_term(place: int) -> bool:
        op = trace.ops[place]
        single = bool(op.outputs) and op.outputs[0].shape == () and is_float(op.outputs[0].dtype)
        if not (single and op.data and op.api) or op.source is None or any(hops[place] >= 0 for hops in influences):
            return False
        return _NAMED.match(trace.sources[op.source].code) is not None

    return max(filter(is_term, walked(topology.readers[variable], topology.onward)), default=-1)
