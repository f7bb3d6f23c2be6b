"""Terms that are computed and that no loss takes."""

from __future__ import annotations

import re

from tb_gradflow.analyse.graph.op_sets import is_float
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology

_NAMED = re.compile(r"\s*[\w.]+\s*=[^=]")


def term_in_vain(topology: Topology, variable: int) -> int:
    """The last single number that is made of a variable and of data, that would hand a gradient back to the variable,
    and that nothing a gradient is asked of depends on; -1 if there is none.

    The user's line gives it a name: a number that is printed, summarised or added to a metric right away is no term.
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
