"""Penalties: what a variable adds to a loss by itself, without any data."""

from __future__ import annotations

from collections.abc import Sequence

from tb_gradflow.analyse.graph.op_sets import QUOTIENTS, passes_gradient, tensor_of
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.record.schema import Edge, Trace

_LINEAR = frozenset(
    {"ReadVariableOp", "Identity", "Cast", "Reshape", "Squeeze", "Sum", "Mean", "AddN", "AddV2", "Add", "Pack", "Neg"}
    | {"Sub", "Mul"}
)
_ADDITIONS = frozenset({"AddN", "AddV2", "Add", "Pack"})
_CURVED = frozenset(
    {"Log", "Log1p", "Exp", "Square", "SquaredDifference", "Abs", "Pow", "Reciprocal", "Sigmoid", "Tanh"}
)


def is_only_added(topology: Topology, variable: int) -> bool:
    """Whether there are only sums, and products with constants, between a variable and data: its gradient is the same
    number in every step, and does not depend on the variable as the gradient of a penalty does."""
    ops = topology.trace.ops
    for op in walked(topology.readers[variable], lambda op: () if ops[op].data else topology.onward(op)):
        is_product = ops[op].type == "Mul" and len([edge for edge in ops[op].inputs if edge.op >= 0]) > 1
        if not ops[op].data and (ops[op].type not in _LINEAR or is_product):
            return False
    return True


def is_made_of_it_alone(topology: Topology, variable: int, op: int) -> bool:
    """Whether an op gives a number that is computed from one variable and nothing else, as a penalty on it is."""
    each = topology.trace.ops[op]
    is_number = [output.shape for output in each.outputs] == [()]
    return is_number and each.data is False and _belongs_to(topology, {op, *topology.made_by(op)}) == {variable}


def is_penalty_alone(topology: Topology, variable: int, target: int, zeros: Sequence[bool] = ()) -> bool:
    """Whether the only gradient is that of a penalty on the variable itself, a number that is added to other terms. No
    data enters its path before that sum. Paths without a gradient do not count, nor paths through ops whose gradient is
    zero according to `zeros`.
    """
    arrives = topology.gradient(target).hops
    readers = [reader for reader in topology.readers[variable] if arrives[reader] >= 0]
    if not readers or any(topology.trace.ops[reader].data is None for reader in readers):
        return False
    seen, stack, joins = set(readers), list(readers), []
    while stack:
        for consumer, edge in topology.consumers[stack.pop()]:
            if not passes_gradient(edge) or arrives[consumer] < 0 or consumer in seen:
                continue
            if zeros and zeros[consumer]:
                continue
            if _adds_numbers(topology.trace, consumer, edge) and not _inputs(topology.trace, consumer) <= seen:
                joins.append(consumer)
            elif topology.trace.ops[consumer].data or arrives[consumer] == 0:
                return False
            else:
                seen.add(consumer)
                stack.append(consumer)
    joined = _meets_data(topology, joins, arrives) and not _is_bent(topology, joins, arrives)
    return joined and _belongs_to(topology, seen) == {variable}


def _meets_data(topology: Topology, joins: list[int], arrives: Sequence[int]) -> bool:
    """Whether a sum of numbers is finally added to a number that depends on data: penalties are often added to each
    other first."""
    for op in walked(joins, lambda op: (user for user in topology.onward(op) if arrives[user] >= 0)):
        if topology.trace.ops[op].data:
            return topology.trace.ops[op].type in _ADDITIONS
    return False


def _is_bent(topology: Topology, joins: list[int], arrives: Sequence[int]) -> bool:
    """Whether a sum is used differently from a term of a loss, which is only added and scaled. A filter divides by the
    noise that it adds to its variance, so this is no penalty. Nor is a value that a loop carries into its next
    iteration, which may do anything with it."""

    def uses(op: int) -> list[tuple[int, Edge]]:
        return [(user, edge) for user, edge in topology.consumers[op] if passes_gradient(edge) and arrives[user] >= 0]

    for op in walked(joins, lambda op: (user for user, _ in uses(op))):
        for user, edge in uses(op):
            kind = topology.trace.ops[user].type
            if edge.carried or kind in _CURVED or (kind in QUOTIENTS and edge.input == 1):
                return True
    return False


def _adds_numbers(trace: Trace, op: int, edge: Edge) -> bool:
    """Whether the edge leads into a sum of numbers."""
    summand = tensor_of(trace, edge)
    total = trace.ops[op].outputs[0] if trace.ops[op].outputs else None
    if summand is None or total is None or summand.shape != () or trace.ops[op].type not in _ADDITIONS:
        return False
    return total.shape == () or trace.ops[op].type == "Pack"


def _inputs(trace: Trace, op: int) -> set[int]:
    return {edge.op for edge in trace.ops[op].inputs}


def _belongs_to(topology: Topology, ops: set[int]) -> set[int]:
    """The variables that contribute to some ops."""
    read = {reader: variable for variable, readers in enumerate(topology.readers) for reader in readers}
    made_by = ops.union(*(_inputs(topology.trace, op) for op in ops))
    return {read[op] for op in made_by if op in read}
