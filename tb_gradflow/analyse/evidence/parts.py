"""Tensors whose parts go different ways, such as the outputs of a layer or heads that are concatenated and split again
in the loss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import isclose

from tb_gradflow.analyse.evidence.gradient_sizes import element_count, read_at
from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.graph.op_sets import JOINS, SAME_ELEMENTS, SLICES, is_float, passes_gradient
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.status import State
from tb_gradflow.record.schema import PYTHON, Edge, Op

_SPLITS = frozenset({"Split", "SplitV", "Unpack"})

# The share of zeros is stored in single precision.
_TOLERANCE = 1e-5


def cuts_behind(suspect: Suspect) -> Iterator[Suspect]:
    """The ops that cut off the variable's part of a joined tensor, if only other parts pass a gradient: the variable's
    part then gets zeros. Parts are identified by their number of elements. Empty if the parts that pass a gradient
    leave no room for it.
    """
    topology, ops = suspect.topology, suspect.topology.trace.ops
    join = _join_before(suspect)
    readers = topology.readers[suspect.state.variable]
    whole = _size(topology, join, 0) if join >= 0 else 0
    sides = {edge.op: edge.output for edge in ops[join].inputs if edge.op >= 0} if whole else {}
    own = [
        _size(topology, op, out) for op, out in sides.items() if not (topology.made_by(op) | {op}).isdisjoint(readers)
    ]
    parts = _parts(topology, suspect.target, [join]) if own and all(own) else None
    used = [part for part in parts or () if part.is_used]
    live = [part.size for part in used if part.learns]
    if not used or 0 in live or sum(own) + sum(live) > whole:
        return
    for part in used:
        if not part.learns:
            yield from _first_cuts(suspect.measured, suspect.state, part)


def suspects_of_parts(measured: Measured, connected: list[State]) -> Iterator[Suspect]:
    """For each variable that gets a gradient of zero in some of its elements: the ops that cut off what is computed
    from them, or that take out a part that the loss does not use, or only the part that it uses. Each of them is a
    suspect for its share of the elements.
    """
    for state in connected:
        zeros = state.gradient.zero_fraction if state.gradient is not None else 0.0
        split = next(_split_wholes(measured, state, zeros), None) if 0 < zeros < 1 else None
        if split is None:
            continue
        whole, parts = split
        size, lost = _size(measured.topology, whole, 0), [part for part in parts if not part.learns]
        for part in lost:
            own = replace(state, zeros=min(part.size / size, zeros))
            if part.is_used:
                yield from _first_cuts(measured, own, part)
            else:
                yield Suspect(measured, own, part.op, whole)
        # A table of more rows than are needed is read in part on purpose.
        if len(parts) == 1 and not lost and read_at(Suspect(measured, state, whole, -1), whole) is None:
            yield Suspect(measured, replace(state, zeros=zeros), parts[0].op, whole)


def joined(chosen: Suspect, suspects: Iterable[Suspect]) -> Suspect:
    """A suspect of a part for the shares of all parts that the same line treats in the same way."""
    ops = chosen.topology.trace.ops
    shares = [each.state.zeros for each in suspects if _is_alike(ops[each.culprit], chosen.op)]
    gradient = chosen.state.gradient
    most = gradient.zero_fraction if gradient is not None else 1.0
    return replace(chosen, state=replace(chosen.state, zeros=min(sum(shares), most)))


def _is_alike(op: Op, other: Op) -> bool:
    return op is other or (op.source, op.type) == (other.source, other.type)


def _split_wholes(measured: Measured, state: State, zeros: float) -> Iterator[tuple[int, list[_Part]]]:
    """The tensors on the way to the loss of which only parts get a gradient, with their parts: the others are the same
    share as the zeros in the variable's gradient, and at least that share of each tensor before gets none. Of the parts
    of a variable itself, more may get a gradient of zero for another reason."""
    topology = measured.topology
    arrives = topology.gradient(state.target).hops

    def is_without(op: int) -> bool:
        gradient = measured.of_op(state.target, op)
        return gradient is None or gradient.zero_fraction >= zeros * (1 - _TOLERANCE)

    def onward(op: int) -> list[int]:
        return [user for user in topology.onward(op) if arrives[user] >= 0 and is_without(user)]

    readers = topology.readers[state.variable]
    for op in walked(readers, onward):
        # Each use of a variable may read it again.
        same = [each for each in readers if topology.trace.ops[each].reads is not None] if op in readers else [op]
        parts, whole = _parts(topology, state.target, same) or [], _size(topology, op, 0)
        live = [part.size for part in parts if part.learns]
        lost = [part.size for part in parts if not part.learns]
        # The same part may be taken out more than once.
        shares = (1 - sum(live) / whole, sum(lost) / whole) if live and whole else ()
        is_all = op in readers and sum(live) + sum(lost) == whole and 0 < sum(lost) / whole < zeros
        if is_all or any(isclose(each, zeros, rel_tol=_TOLERANCE) for each in shares):
            yield op, parts


def is_cut(suspect: Suspect) -> bool:
    """Whether the suspect of a part cuts it off: the others are the slices themselves."""
    return suspect.op.type not in SLICES and not (is_split(suspect.op) and is_float(suspect.op.outputs[0].dtype))


def only_decides(suspect: Suspect) -> bool:
    """Whether what is cut off goes to Python, or decides which branch runs: an action may be chosen by it, or a number
    kept out of the gradient on purpose."""
    topology = suspect.topology
    influence = topology.influence(suspect.target).hops
    behind = walked([suspect.culprit], lambda op: (user for user, _ in topology.consumers[op] if influence[user] >= 0))
    return any(topology.trace.ops[op].type in _DECIDING for op in behind)


_DECIDING = frozenset({PYTHON, "If", "StatelessIf", "Case", "StatelessCase"})


def is_split(op: Op) -> bool:
    return op.type in _SPLITS


def _join_before(suspect: Suspect) -> int:
    """The join whose gradient has the zeros; -1 if there is none."""
    origins = (suspect.topology.origin(op, SAME_ELEMENTS) for op in (suspect.producer, suspect.culprit))
    return next((op for op in origins if suspect.type_of(op) in JOINS), -1)


@dataclass(frozen=True, slots=True)
class _Part:
    """An output of an op that takes a part of a tensor.

    Attributes:
        op: The op.
        output: Which of its outputs.
        size: The number of elements for one example; 0 if that is unknown.
        is_used: Whether the loss depends on it.
        learns: Whether a gradient comes from there.
    """

    op: int
    output: int
    size: int
    is_used: bool
    learns: bool


def _parts(topology: Topology, target: int, whole: Iterable[int]) -> list[_Part] | None:
    """The parts that are taken out of a tensor, or out of several equal ones; None if something else passes a gradient
    to it."""
    ops, found = topology.trace.ops, []
    influence, arrives = topology.influence(target).hops, topology.gradient(target).hops
    for place in (queue := list(whole)):  # grows while it is walked
        users: dict[int, bool] = {}
        for user, edge in topology.consumers[place]:
            users[user] = users.get(user, False) or (passes_gradient(edge) and arrives[user] >= 0)
        for op, learns in users.items():
            if ops[op].type in SAME_ELEMENTS:
                queue.append(op)
            elif ops[op].type in SLICES:
                found.append(_Part(op, 0, _size(topology, op, 0), influence[op] >= 0, learns))
            elif ops[op].type in _SPLITS:
                for output in range(len(ops[op].outputs)):
                    takers = [(user, edge) for user, edge in topology.consumers[op] if edge.output == output]
                    is_used = any(influence[user] >= 0 for user, _ in takers)
                    passes = any(passes_gradient(edge) and arrives[user] >= 0 for user, edge in takers)
                    found.append(_Part(op, output, _size(topology, op, output), is_used, passes))
            elif learns:
                return None
    return found


def _first_cuts(measured: Measured, state: State, part: _Part) -> Iterator[Suspect]:
    topology = measured.topology
    influence = topology.influence(state.target).hops

    def uses(place: int) -> list[tuple[int, Edge]]:
        outputs = [(user, edge) for user, edge in topology.consumers[place] if influence[user] >= 0]
        return [(user, edge) for user, edge in outputs if place != part.op or edge.output == part.output]

    for place in walked([part.op], lambda place: (user for user, edge in uses(place) if passes_gradient(edge))):
        for user, edge in uses(place):
            if not passes_gradient(edge):
                yield Suspect(measured, state, topology.blamed(place, user, edge), place)


def _size(topology: Topology, op: int, output: int) -> int:
    """The number of elements of an output for one example; 0 if that is unknown."""
    outputs = topology.trace.ops[op].outputs
    return element_count(outputs[output].shape) if output < len(outputs) else 0
