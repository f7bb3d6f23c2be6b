"""Which op feeds which in a trace, and how far influence and gradient reach.

A `Topology` is built once per trace and serves every step of it. All walks are iterative and linear in ops and
edges, whatever the number of variables: one backward sweep per target answers for all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tb_gradflow.analyse.graph.op_sets import (
    COPIES,
    SHAPE_ONLY,
    SOFTMAX,
    has_single_class,
    is_float,
    passes_gradient,
    tensor_of,
)
from tb_gradflow.analyse.graph.paths import Ways, unwound, walked, ways_to
from tb_gradflow.analyse.graph.sinks import Outlet, outlets
from tb_gradflow.record.schema import Edge, Trace, VariableGradient


@dataclass(frozen=True, slots=True)
class Crossing:
    """An edge at which the gradient is lost: it gets no further back than `culprit`.

    Attributes:
        producer: The op that misses the gradient.
        consumer: The op that uses its value.
        culprit: The op that causes it: the consumer, unless the producer already returned a value without a gradient.
        edge: The consumer's input.
        handed_by: The op before the culprit, if the culprit comes after the consumer; otherwise -1.
    """

    producer: int
    consumer: int
    culprit: int
    edge: Edge
    handed_by: int = -1


class Topology:
    """Indexes over one trace.

    Attributes:
        trace: The trace.
        consumers: For each op, the ops that use its value and the edges, in the order of the trace.
        readers: For each variable, the ops that read it, in the order of the trace.
        written: The variables that an op writes.
        has_carried: Whether any value goes around a loop.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        count = len(trace.ops)
        self.consumers: list[list[tuple[int, Edge]]] = [[] for _ in range(count)]
        self._onward: list[list[int]] = [[] for _ in range(count)]
        self._sources: list[list[int]] = [[] for _ in range(count)]
        self._gradient_sources: list[list[int]] = [[] for _ in range(count)]
        self.readers: list[list[int]] = [[] for _ in trace.variables]
        self.written = frozenset(op.writes for op in trace.ops if op.writes is not None)
        self.has_carried = False
        self._ways: dict[int, Ways] = {}
        self._gradient_ways: dict[int, Ways] = {}
        self._made_by: dict[int, frozenset[int]] = {}
        for index in range(count):
            self._add(index)

    def _add(self, index: int) -> None:
        op = self.trace.ops[index]
        if op.reads is not None:
            self.readers[op.reads].append(index)
        if op.type in SHAPE_ONLY:
            return
        for edge in op.inputs:
            if edge.op < 0:
                continue
            self.has_carried = self.has_carried or edge.carried
            self.consumers[edge.op].append((index, edge))
            self._sources[index].append(edge.op)
            if passes_gradient(edge):
                self._onward[edge.op].append(index)
                self._gradient_sources[index].append(edge.op)

    def influence(self, target: int) -> Ways:
        """How each op's value reaches the target, along any edges: data, state, loops."""
        if target not in self._ways:
            self._ways[target] = ways_to(self.trace.targets[target].op, self._sources)
        return self._ways[target]

    def gradient(self, target: int) -> Ways:
        """How the target's gradient reaches each op, along edges that pass it."""
        if target not in self._gradient_ways:
            self._gradient_ways[target] = ways_to(self.trace.targets[target].op, self._gradient_sources)
        return self._gradient_ways[target]

    def influences(self, variable: int, target: int) -> bool:
        """Whether the target depends on the variable's value."""
        hops = self.influence(target).hops
        return any(hops[reader] >= 0 for reader in self.readers[variable])

    def receives(self, variable: int, target: int) -> bool:
        """Whether some path from the target to the variable passes the gradient everywhere."""
        hops = self.gradient(target).hops
        return any(hops[reader] >= 0 for reader in self.readers[variable])

    def onward(self, op: int) -> Sequence[int]:
        """The consumers that pass a gradient to this op."""
        return self._onward[op]

    def cut_crossings(self, target: int) -> list[Crossing]:
        """Every edge at which a value without a gradient continues toward the target, but the gradient does not come
        back."""
        influence, gradient = self.influence(target).hops, self.gradient(target).hops
        return [
            Crossing(producer, consumer, self.blamed(producer, consumer, edge), edge)
            for producer in range(len(self.trace.ops))
            if influence[producer] >= 0 and gradient[producer] < 0
            for consumer, edge in self.consumers[producer]
            if influence[consumer] >= 0 and not passes_gradient(edge)
        ]

    def raising_crossings(self, target: int) -> list[Crossing]:
        """Every edge at which requesting the target's gradient raises an exception."""
        gradient = self.gradient(target).hops
        return [
            Crossing(producer, consumer, consumer, edge)
            for producer, users in enumerate(self.consumers)
            for consumer, edge in users
            if edge.passes in ("unregistered", "error") and gradient[consumer] >= 0
        ]

    def blamed(self, producer: int, consumer: int, edge: Edge) -> int:
        """The op that causes a cut. For a state edge this is the assignment. For a tensor without derivative that an op
        computed from differentiable inputs (the indices of `tf.math.top_k`) it is that op, not its reader.
        """
        op = self.trace.ops[producer]
        if edge.passes == "state":
            return producer
        tensor = tensor_of(self.trace, edge)
        made_it = op.reads is None and any(passes_gradient(each) and each.op >= 0 for each in op.inputs)
        return producer if made_it and tensor is not None and not is_float(tensor.dtype) else consumer

    def met_first(self, inside: Sequence[bool], crossings: Sequence[Crossing]) -> list[int]:
        """For each op inside a region, the first crossings on all paths out of it along passing edges. One bit set for
        each op: bit `n` is crossing number `n`.
        """
        met = [0] * len(self.trace.ops)
        for place, crossing in enumerate(crossings):
            met[crossing.producer] |= 1 << place
        changed = bool(crossings)
        while changed:
            changed = self._spread(met, inside) and self.has_carried
        return met

    def _spread(self, met: list[int], inside: Sequence[bool]) -> bool:
        changed = False
        for op in range(len(met) - 1, -1, -1):
            if not inside[op]:
                continue
            bits = met[op]
            for consumer in self._onward[op]:
                if inside[consumer]:
                    bits |= met[consumer]
            if bits != met[op]:
                met[op] = bits
                changed = True
        return changed

    def way_between(self, starts: Iterable[int], goal: int, *, gradient_only: bool = True) -> tuple[int, ...]:
        """The shortest path forward from any of `starts` to `goal`, both included; empty if there is none."""
        came_from: dict[int, int] = dict.fromkeys(starts, -1)
        queue = deque(came_from)
        while queue:
            op = queue.popleft()
            if op == goal:
                return unwound(came_from, goal)
            onward = self._onward[op] if gradient_only else [consumer for consumer, _ in self.consumers[op]]
            for consumer in onward:
                if consumer not in came_from:
                    came_from[consumer] = op
                    queue.append(consumer)
        return ()

    def ahead(self, starts: Iterable[int], types: Collection[str]) -> Iterator[int]:
        """These ops, and the ones whose gradient they get through ops of these types alone, the nearest first."""
        return walked(starts, lambda op: self.onward(op) if self.trace.ops[op].type in types else ())

    def behind(self, starts: Iterable[int], types: Collection[str]) -> Iterator[int]:
        """These ops, and the ones whose values they get through ops of these types alone, the nearest first."""
        return walked(starts, lambda op: self.inputs_of(op) if self.trace.ops[op].type in types else ())

    def reached_from(self, starts: Iterable[int]) -> set[int]:
        """Every op that the values of `starts` flow into, themselves included."""
        return set(walked(starts, lambda op: (consumer for consumer, _ in self.consumers[op])))

    def leading_to(self, goals: Iterable[int]) -> set[int]:
        """Every op whose value flows into any of `goals`, themselves included."""
        return set(walked(goals, self.sources))

    def sources(self, op: int) -> Sequence[int]:
        """The ops that `op` computes its value from."""
        return self._sources[op]

    def inputs_of(self, op: int) -> Iterator[int]:
        """The ops that compute what an op takes, also what it takes from the last iteration; -1 for an op that was left
        out."""
        return (edge.op for edge in self.trace.ops[op].inputs)

    def first_input(self, op: int) -> int:
        """The op that computes what an op takes as its first input; -1 if none does."""
        return next((edge.op for edge in self.trace.ops[op].inputs if edge.input == 0), -1)

    def origin(self, op: int, types: Collection[str]) -> int:
        """The op that computes or reads a value which ops of these types then only propagate; -1 if none does."""
        while op >= 0 and self.trace.ops[op].reads is None and self.trace.ops[op].type in types:
            op = self.first_input(op)
        return op

    def ancestors(self, op: int) -> list[int]:
        """The ops whose values go into an op, the nearest first."""
        return [*walked([op], self.inputs_of)][1:]

    def made_by(self, op: int) -> frozenset[int]:
        """The same as a set, cached: for ops that are looked up for every variable."""
        if op not in self._made_by:
            self._made_by[op] = frozenset(self.ancestors(op))
        return self._made_by[op]

    def dead_end(self, variable: int) -> int:
        """The last op that a variable's value flows into and that nothing uses. -1 if nothing computes with the value:
        if no op reads it, or it is only copied.
        """
        found = [self._outlets[reader] for reader in self.readers[variable]]
        if not any(outlet.computes for outlet in found):
            return -1
        end = max(outlet.end for outlet in found)
        end = max(outlet.furthest for outlet in found) if end < 0 else end
        while self.trace.ops[end].type in COPIES and self.trace.ops[end].inputs:
            end = self.trace.ops[end].inputs[0].op
        return end

    @cached_property
    def _outlets(self) -> list[Outlet]:
        takers = [[consumer for consumer, _ in users] for users in self.consumers]
        return outlets(takers, [op.type in COPIES for op in self.trace.ops], again=self.has_carried)

    @cached_property
    def of_variables(self) -> list[bool]:
        """For each op, whether its value depends on a variable. Some that depend on none are included, because they may
        not be finite."""
        found: list[bool] = []
        for op in self.trace.ops:
            carried = any(edge.carried for edge in op.inputs)
            found.append(op.reads is not None or carried or any(found[edge.op] for edge in op.inputs if edge.op >= 0))
        return found

    def has_factor_of_data(self, op: int) -> bool:
        """Whether the op is a product with a value that depends on no variable."""
        inputs = [edge for edge in self.trace.ops[op].inputs if edge.op >= 0 and self.of_variables[edge.op]]
        return self.trace.ops[op].type in ("Mul", "MulNoNan") and len(inputs) == 1

    @cached_property
    def single_class_ops(self) -> list[int]:
        """Softmaxes, and losses with one inside, over an axis of length one."""
        return [op for kind in SOFTMAX for op in self.by_type.get(kind, ()) if self._has_single_class(op)]

    def _has_single_class(self, op: int) -> bool:
        """TensorFlow's loss gives the logits another shape first, which is known only at run time."""
        ops = self.trace.ops
        before = self.first_input(op)
        is_reshaped = before >= 0 and ops[before].type == "Reshape" and "softmax_cross_entropy" in ops[before].name
        given = self.first_input(before) if is_reshaped else -1
        shape = ops[given].outputs[0].shape if given >= 0 and ops[given].outputs else None
        return has_single_class(ops[op]) or (shape is not None and shape[-1:] == (1,))

    def entries_of(self, variable: int) -> Sequence[VariableGradient]:
        """What the tape answered for a variable, for each target."""
        return self._entries.get(variable, ())

    @cached_property
    def _entries(self) -> dict[int, list[VariableGradient]]:
        found: dict[int, list[VariableGradient]] = {}
        for entry in self.trace.variable_gradients:
            found.setdefault(entry.variable, []).append(entry)
        return found

    @cached_property
    def tensor_targets(self) -> frozenset[int]:
        """The targets whose gradient was requested only for tensors, not for variables."""
        requested: dict[int, list[bool]] = {}
        for entry in self.trace.variable_gradients:
            if entry.outcome != "not_asked":
                requested.setdefault(entry.target, []).append(self.trace.variables[entry.variable].computed)
        found = {target for target, computed in requested.items() if all(computed)}
        if len(found) == len(requested):
            # The sources of an inner gradient that are also those of an outer one are only listed for the outer one.
            found.update(place for place, each in enumerate(self.trace.targets) if each.sources and requested)
        return frozenset(found)

    @cached_property
    def by_type(self) -> dict[str, list[int]]:
        """The ops of each type, in the order of the trace."""
        found: dict[str, list[int]] = {}
        for place, op in enumerate(self.trace.ops):
            found.setdefault(op.type, []).append(place)
        return found

    @cached_property
    def tensor_rows(self) -> dict[int, tuple[list[int], list[int]]]:
        """For each target, ops with a measured output and the row of `Chunk.gradients` it is in, side by side."""
        rows: dict[int, tuple[list[int], list[int]]] = {}
        for tensor in self.trace.tensor_gradients:
            if tensor.row is not None and tensor.op >= 0:
                ops, places = rows.setdefault(tensor.target, ([], []))
                ops.append(tensor.op)
                places.append(tensor.row)
        return rows
