"""Tensors that are concatenated, such as the heads of a network, and split again in the loss."""

from __future__ import annotations

from collections.abc import Iterator

from tb_gradflow.analyse.evidence.course import element_count
from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.graph.op_sets import passes_gradient
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.record.schema import Edge

_JOINS = frozenset({"ConcatV2", "Concat", "Pack"})
_HANDING_ON = frozenset({"Reshape", "Identity", "Transpose", "Cast", "Squeeze", "ExpandDims"})
_SLICES = frozenset({"StridedSlice", "Slice"})
_SPLITS = frozenset({"Split", "SplitV", "Unpack"})


def cuts_behind(suspect: Suspect) -> Iterator[Suspect]:
    """The ops that cut off the variable's part of a joined tensor, if only other parts pass a gradient: the variable's
    part then gets zeros. Parts are identified by their number of elements. Empty if the parts that pass a gradient
    leave no room for it.
    """
    topology, ops = suspect.topology, suspect.topology.trace.ops
    join = _join_before(suspect)
    readers = topology.readers[suspect.state.variable]
    whole = _size(suspect, join, 0) if join >= 0 else 0
    sides = {edge.op: edge.output for edge in ops[join].inputs if edge.op >= 0} if whole else {}
    own = [
        _size(suspect, op, out) for op, out in sides.items() if not (topology.made_by(op) | {op}).isdisjoint(readers)
    ]
    parts = list(_parts(suspect, join)) if own and all(own) else []
    live = [size for _, _, size, passes in parts if passes]
    if not parts or 0 in live or sum(own) + sum(live) > whole:
        return
    for op, output, _, passes in parts:
        if not passes:
            yield from _first_cuts(suspect, op, output)


def _join_before(suspect: Suspect) -> int:
    """The join whose gradient has the zeros; -1 if there is none."""
    ops = suspect.topology.trace.ops
    for op in (suspect.producer, suspect.culprit):
        while op >= 0 and ops[op].type in _HANDING_ON:
            op = next((edge.op for edge in ops[op].inputs if edge.input == 0), -1)
        if op >= 0 and ops[op].type in _JOINS:
            return op
    return -1


def _parts(suspect: Suspect, join: int) -> Iterator[tuple[int, int, int, bool]]:
    """The parts that are taken out of it: op, output, number of elements, and whether a gradient comes from there.
    Empty if another path uses it too.
    """
    topology, ops = suspect.topology, suspect.topology.trace.ops
    influence = topology.influence(suspect.target).hops
    arrives = topology.gradient(suspect.target).hops
    queue, found = [join], []
    for place in queue:  # grows while it is walked
        for op in dict.fromkeys(user for user, _ in topology.consumers[place] if influence[user] >= 0):
            if ops[op].type in _HANDING_ON:
                queue.append(op)
            elif ops[op].type in _SLICES:
                found.append((op, 0, _size(suspect, op, 0), arrives[op] >= 0))
            elif ops[op].type in _SPLITS:
                for output in sorted({edge.output for user, edge in topology.consumers[op] if influence[user] >= 0}):
                    users = [(user, edge) for user, edge in topology.consumers[op] if edge.output == output]
                    passes = any(passes_gradient(edge) and arrives[user] >= 0 for user, edge in users)
                    found.append((op, output, _size(suspect, op, output), passes))
            else:
                return
    yield from found


def _first_cuts(suspect: Suspect, part: int, output: int) -> Iterator[Suspect]:
    topology = suspect.topology
    influence = topology.influence(suspect.target).hops

    def uses(place: int) -> list[tuple[int, Edge]]:
        outputs = [(user, edge) for user, edge in topology.consumers[place] if influence[user] >= 0]
        return [(user, edge) for user, edge in outputs if place != part or edge.output == output]

    for place in walked([part], lambda place: (user for user, edge in uses(place) if passes_gradient(edge))):
        for user, edge in uses(place):
            if not passes_gradient(edge):
                yield Suspect(suspect.measured, suspect.state, topology.blamed(place, user, edge), place)


def _size(suspect: Suspect, op: int, output: int) -> int:
    """The number of elements of an output for one example; 0 if that is unknown."""
    outputs = suspect.topology.trace.ops[op].outputs
    return element_count(outputs[output].shape) if output < len(outputs) else 0
