"""Paths that a `tf.stop_gradient` cuts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.graph.op_sets import SUMS_OF_TWO
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.stopped import STOPS, reads_same
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.record.schema import Op


def takes_back_its_value(topology: Topology, last: int) -> bool:
    """Whether an op is the last of `x + stop_gradient(q) - x`, where `q` is computed from `x`: the value is that of
    `q`, as in a straight-through estimator, but the gradients for `x` cancel."""
    return any(_takes_back(topology, *terms) for terms in _terms(topology.trace.ops, last))


def _terms(ops: Sequence[Op], last: int) -> Iterator[tuple[list[int], list[int]]]:
    """The ops that a sum of three adds, and those that it subtracts."""
    if last < 0 or ops[last].type not in SUMS_OF_TWO:
        return
    sides = [edge.op for edge in sorted(ops[last].inputs, key=lambda edge: edge.input)]
    for place, inner in enumerate(sides):
        if len(sides) != 2 or inner < 0 or ops[inner].type not in SUMS_OF_TWO:
            continue
        left, *right = (edge.op for edge in sorted(ops[inner].inputs, key=lambda edge: edge.input))
        added = [left, *(right if ops[inner].type != "Sub" else [])]
        taken = right if ops[inner].type == "Sub" else []
        if ops[last].type == "Sub" and place == 1:
            added, taken = taken, added
        (taken if ops[last].type == "Sub" and place == 0 else added).append(sides[1 - place])
        yield added, taken


def _takes_back(topology: Topology, added: Sequence[int], taken: Sequence[int]) -> bool:
    ops = topology.trace.ops
    if len(added) != 2 or len(taken) != 1 or min(*added, *taken) < 0:
        return False
    same = [op for op in added if op == taken[0] or reads_same(ops[op], ops[taken[0]])]
    if len(same) != 1:
        return False
    [stopped] = [op for op in added if op != same[0]]
    return any(op == same[0] or reads_same(ops[op], ops[same[0]]) for op in topology.made_by(stopped))


def is_stopped_behind(suspect: Suspect) -> bool:
    """Whether every path from the cut onwards leads through a `stop_gradient`."""
    if suspect.op.type in STOPS:
        return False
    return suspect.culprit not in suspect.measured.once(("not stopped", suspect.target), lambda: _not_stopped(suspect))


def _not_stopped(suspect: Suspect) -> set[int]:
    """The ops from which a path without a `stop_gradient` leads to a place where a gradient arrives."""
    topology, arrives = suspect.topology, suspect.topology.gradient(suspect.target).hops
    ends = (op for op, hops in enumerate(arrives) if hops >= 0 and suspect.type_of(op) not in STOPS)
    reached = walked(ends, lambda op: (each for each in topology.sources(op) if suspect.type_of(each) not in STOPS))
    return {source for op in reached for source in topology.sources(op)}
