"""Terms of a loss that give no gradient, next to others that do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from tb_gradflow.analyse.evidence.discrete import ROUNDING
from tb_gradflow.analyse.evidence.suspects import Suspect, suspects_at
from tb_gradflow.analyse.graph.op_sets import CHOICES, SUMS_OF_TWO, passes_gradient, scopes_of
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.stopped import STOPS
from tb_gradflow.analyse.graph.topology import Crossing, Topology
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.status import State
from tb_gradflow.record.schema import Op

# These add and scale numbers; the sum and the mean of a single number are that number.
_ADDING = frozenset({"AddV2", "Add", "AddN", "Sub", "Pack"})
_OF_ROWS = frozenset({"Sum", "Mean", "AddV2", "Add", "Sub"})
_HANDING_ON = frozenset({"Identity", "Neg", "Sum", "Mean", "Reshape", "Squeeze", "Cast"})


def suspects_of_terms(measured: Measured, connected: list[State]) -> Iterator[Suspect]:
    """For each variable in a term without a gradient, every op that cuts it off from that term."""
    topology = measured.topology
    for target, states in _by_target(connected):
        for term in _silent(topology, target):
            for suspect in _cut_off(measured, states, term, topology.made_by(term) | {term}):
                # A rounded value that is added to what is left of it is a place between two others.
                if not _is_added_in_rows(topology, term) or suspect.op.type not in ROUNDING:
                    yield suspect


def suspects_beside_others(measured: Measured, connected: list[State], *, alone: bool = False) -> Iterator[Suspect]:
    """For each variable of which a term uses the value and gives a gradient only to others, every op that cuts it off
    from that term: an encoder that learns from a divergence alone. Not if a `stop_gradient` is on every path to it. And
    not if another term, which teaches the variable, uses the result of the op too: the score of a sampled action.

    With `alone` only where the term has nothing of the data but what comes through such ops, and no value behind a
    `stop_gradient`: a decoder that gets the number of a code, unlike an expert that gets the data itself."""
    topology = measured.topology
    for target, states in _by_target(connected):
        terms = _terms(topology, topology.trace.targets[target].op)
        ways = {term: (_without_stop(topology, term), _reached_back(topology, term)) for term in terms}
        for term in terms if len(terms) > 1 else ():
            used, reached = ways[term]
            cut = [
                replace(state, beside=True)
                for state in states
                if reached.isdisjoint(readers := topology.readers[state.variable]) and not used.isdisjoint(readers)
            ]
            if alone and not _is_fed_by_cuts(topology, term, used, reached):
                continue
            if cut and _gives_any(topology, target, reached):
                for suspect in _cut_off(measured, cut, term, used):
                    readers = topology.readers[suspect.state.variable]
                    if not any(
                        suspect.culprit in uses and not teaches.isdisjoint(readers) for uses, teaches in ways.values()
                    ):
                        yield suspect


def _by_target(states: Sequence[State]) -> Iterator[tuple[int, list[State]]]:
    for target in sorted({state.target for state in states if state.target >= 0}):
        yield target, [state for state in states if state.target == target]


def _cut_off(measured: Measured, states: list[State], term: int, made: Set[int]) -> Iterator[Suspect]:
    """The ops that cut the variables off from a term, on the paths through some ops."""
    topology = measured.topology
    reached = _reached_back(topology, term)
    inside = [op in made and op not in reached for op in range(len(topology.trace.ops))]
    crossings = [
        Crossing(producer, consumer, topology.blamed(producer, consumer, edge), edge)
        for producer in sorted(made - reached)
        for consumer, edge in topology.consumers[producer]
        if consumer in made and not passes_gradient(edge)
    ]
    return suspects_at(measured, states, inside, crossings)


def _gives_any(topology: Topology, target: int, reached: Set[int]) -> bool:
    """Whether a variable whose gradient was requested is among the ops that a term's gradient reaches."""
    return any(
        entry.target == target and entry.outcome == "value" and not reached.isdisjoint(topology.readers[entry.variable])
        for entry in topology.trace.variable_gradients
    )


def _is_fed_by_cuts(topology: Topology, term: int, used: Set[int], reached: Set[int]) -> bool:
    ops = topology.trace.ops
    entered = {
        consumer
        for producer in used - reached
        for consumer, edge in topology.consumers[producer]
        if consumer in reached and not passes_gradient(edge)
    }
    behind = set(walked(entered, topology.onward))
    stopped = any(ops[op].type in STOPS for op in topology.made_by(term))
    return not stopped and all(op in behind for op in reached if _takes_data(ops[op]))


def _takes_data(op: Op) -> bool:
    """Whether an op is given numbers, or the indices of rows, that depend on no variable."""
    return bool(op.given) or (op.type in _LOOKING_UP and not any(edge.input == 1 for edge in op.inputs))


_LOOKING_UP = frozenset({"GatherV2", "Gather", "ResourceGather", "GatherNd"})


def _without_stop(topology: Topology, term: int) -> set[int]:
    """The ops from which a path without a `stop_gradient` leads to a term, and the term."""
    ops = topology.trace.ops
    return set(walked([term], lambda op: () if ops[op].type in STOPS else topology.sources(op)))


def _silent(topology: Topology, target: int) -> list[int]:
    """The terms of a loss that are computed from variables and give none of them a gradient; empty if this holds for
    all terms. Only the variables count for which the gradient of that loss was requested: those of a critic do not show
    what a generator gets through it."""
    terms = _terms(topology, topology.trace.targets[target].op)
    entries = [each for each in topology.trace.variable_gradients if each.target == target]
    asked = {each.variable for each in entries if each.outcome != "not_asked"}
    reads = {reader for variable, readers in enumerate(topology.readers) if variable in asked for reader in readers}
    silent = [term for term in terms if reads.isdisjoint(_reached_back(topology, term, reads))]
    if len(silent) == len(terms):
        return []
    return [term for term in silent if not reads.isdisjoint(topology.made_by(term))]


def _terms(topology: Topology, op: int) -> list[int]:
    """The numbers whose sum is the loss, or what it sums or averages over rows: in `mean(a + b)` both are terms. A sum
    inside a layer has none."""
    ops, found = topology.trace.ops, []
    layers = {layer.scope for layer in topology.trace.layers}
    queue = [op] if op >= 0 else []
    seen = set(queue)
    for place in queue:  # grows while it is walked
        # A loss with another one in its place, for batches in which it is not finite.
        chooses = ops[place].type in CHOICES
        given = [edge.op for edge in ops[place].inputs if edge.op >= 0 and not (chooses and edge.input == 0)]
        numbers = all(_is_number(topology, each) for each in given)
        scales = ops[place].type in ("Mul", "RealDiv", "DivNoNan") and len(given) == 1
        sums_rows = (scales or ops[place].type in _OF_ROWS) and layers.isdisjoint(scopes_of(ops[place].name))
        rows = sums_rows and all(_has_shape_of(topology, each, given[0]) for each in given)
        packed = ops[place].type in _HANDING_ON and len(given) == 1 and ops[given[0]].type == "Pack"
        adds = ops[place].type in _ADDING or (ops[place].type in _HANDING_ON and len(given) == 1)
        if given and ((adds or scales or chooses) and (numbers or packed or rows)):
            queue.extend(each for each in dict.fromkeys(given) if each not in seen)
            seen.update(given)
        else:
            found.append(place)
    return found


def _is_added_in_rows(topology: Topology, term: int) -> bool:
    """Whether it is added to something else before the sum or the mean over rows."""
    users = walked([term], lambda op: [user for user in topology.onward(op) if not _is_number(topology, user)])
    return not _is_number(topology, term) and any(topology.trace.ops[user].type in SUMS_OF_TWO for user in users)


def _has_shape_of(topology: Topology, op: int, other: int) -> bool:
    """Whether the results of two ops have the same shape, as far as is known."""
    one, two = (topology.trace.ops[each].outputs for each in (op, other))
    return bool(one) and bool(two) and one[0].shape is not None and one[0].shape == two[0].shape


def _is_number(topology: Topology, op: int) -> bool:
    """Whether an op returns a scalar, as far as is known."""
    outputs = topology.trace.ops[op].outputs
    return bool(outputs) and outputs[0].shape in ((), None)


def _reached_back(topology: Topology, term: int, goals: Set[int] = frozenset()) -> set[int]:
    """The ops that the gradient of a term reaches, up to the first of `goals`."""
    found, stack = {term}, [term]
    while stack and stack[-1] not in goals:
        for edge in topology.trace.ops[stack.pop()].inputs:
            if edge.op >= 0 and passes_gradient(edge) and edge.op not in found:
                found.add(edge.op)
                stack.append(edge.op)
    return found
