"""Which gradients could not be computed, if the step failed because of that: XLA could not compile them, or a matrix
has no inverse."""

from __future__ import annotations

import re

from tb_gradflow.analyse.graph.op_sets import LOOPS
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology

_LISTS = re.compile("tensor ?list|TensorArray", re.IGNORECASE)

_NO_INVERSE = re.compile("not invertible|not successful|singular", re.IGNORECASE)

# Their gradients invert, or solve with, their input or output.
_INVERTING = (
    *("MatrixDeterminant", "LogMatrixDeterminant", "MatrixInverse", "MatrixSolve", "MatrixSolveLs"),
    *("MatrixTriangularSolve", "Cholesky", "Qr", "MatrixSquareRoot"),
)


def inverting_ops(topology: Topology, target: int) -> list[int]:
    """The ops whose gradient cannot be computed because a matrix has no inverse, the nearest to the loss first; empty
    if the step did not fail because of that."""
    if not _NO_INVERSE.search(topology.trace.failure):
        return []
    arrives = topology.gradient(target).hops
    found = [op for kind in _INVERTING for op in topology.by_type.get(kind, ())]
    return sorted((op for op in found if arrives[op] >= 0 and topology.of_variables[op]), key=lambda op: arrives[op])


def is_refused_by_xla(topology: Topology, variable: int, target: int) -> bool:
    """Whether the variable's gradient would have to pass through a function, or a whole step, that XLA had to compile
    but could not."""
    if "XLA" not in topology.trace.failure or not topology.receives(variable, target):
        return False
    compiled = {place for place, op in enumerate(topology.trace.ops) if op.compiled}
    if not compiled:
        return True
    arrives = topology.gradient(target).hops
    readers = (reader for reader in topology.readers[variable] if arrives[reader] >= 0)
    ahead = walked(readers, lambda op: (user for user in topology.onward(op) if arrives[user] >= 0))
    return not compiled.isdisjoint(ahead)


def ops_that_raise(topology: Topology) -> frozenset[int]:
    """The ops whose own gradient raises when it is requested, or failed in this step."""
    found: set[int] = set()
    for target in range(len(topology.trace.targets)):
        found.update(crossing.consumer for crossing in topology.raising_crossings(target))
        found.update(inverting_ops(topology, target))
    return frozenset(found)


def refused_op(topology: Topology) -> int:
    """The op inside a function compiled by XLA at which compilation failed: the first loop if XLA rejects the lists
    that loops keep for their gradient, otherwise the first op; -1 if there is none."""
    compiled = [place for place, op in enumerate(topology.trace.ops) if op.compiled]
    loops = [place for place in compiled if topology.trace.ops[place].type in LOOPS]
    return (loops if loops and _LISTS.search(topology.trace.failure) else [*compiled, -1])[0]
