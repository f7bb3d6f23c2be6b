"""A suspect op, and everything known about it: the input of the rules. The structure shows cuts; measured values show
birthplaces, the ops whose incoming gradient is fine and whose outgoing one is not. Both become suspects, and the rules
in `causes` decide which cause they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from tb_gradflow.analyse.graph.inner_gradients import is_slope
from tb_gradflow.analyse.graph.op_sets import LOOPS, ROUTING, STRAIGHT, is_float, passes_gradient
from tb_gradflow.analyse.graph.paths import members
from tb_gradflow.analyse.graph.topology import Crossing, Topology
from tb_gradflow.analyse.step.measured import Measured, is_zero
from tb_gradflow.analyse.step.status import State
from tb_gradflow.record.report import Severity
from tb_gradflow.record.schema import Edge, Op

NO_OP = -2
"""Instead of a culprit: no op is the cause."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a rule for a suspect.

    Attributes:
        cause: Name of the cause.
        severity: How bad that is.
        culprit: The op to name, if it is not the suspect; -1 for the suspect itself; `NO_OP` for none.
        text: Writes message and fix from what the rule saw, given the group; None if the cause's own `text` does.
        facts: What the rule saw, for the text and the edits of the cause.
    """

    cause: str
    severity: Severity
    culprit: int = -1
    text: Callable[..., Any] | None = None
    facts: Any = None


@dataclass(frozen=True, slots=True)
class Suspect:
    """An op at which one variable's gradient goes missing, turns zero or stops being finite.

    Attributes:
        measured: The step, and the trace under it.
        state: The variable and what it got.
        culprit: Index of the op; -1 if there is none.
        producer: Index of the op whose gradient is lost there; -1 if unknown.
        exact: Whether the tensors around it were measured, so that no other op can be meant.
    """

    measured: Measured
    state: State
    culprit: int
    producer: int
    exact: bool = True

    @property
    def topology(self) -> Topology:
        return self.measured.topology

    @property
    def target(self) -> int:
        return self.state.target

    @property
    def op(self) -> Op:
        return self.topology.trace.ops[self.culprit]

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The inputs through which the culprit should have passed the gradient to the producer."""
        return tuple(edge for edge in self.op.inputs if edge.op == self.producer) or self.op.inputs

    def leads_to(self, op: int) -> bool:
        """Whether the op reads the variable, or computes something from it."""
        readers = self.topology.readers[self.state.variable]
        return op in readers or not self.topology.made_by(op).isdisjoint(readers)

    def type_of(self, op: int) -> str:
        return self.topology.trace.ops[op].type if op >= 0 else ""


Rule = Callable[[Suspect], Verdict | None]
"""The rule of one cause: its verdict, or None if it does not apply to the suspect. Pure."""


@dataclass(frozen=True, slots=True)
class Use:
    """A place where a value without a derivative becomes floating-point again, or decides something.

    Attributes:
        consumer: Index of the op that uses it.
        input: Which of its inputs.
        via: Index of the op that produced the value used.
    """

    consumer: int
    input: int
    via: int


@dataclass(frozen=True, slots=True)
class Discrete:
    """The part of the graph after a culprit that computes only with integers and booleans.

    Attributes:
        ops: The culprit, then what follows it in order of distance; those that make no floating tensor.
        uses: How that part goes on toward the target.
    """

    ops: tuple[int, ...]
    uses: tuple[Use, ...]


def discrete_part(suspect: Suspect) -> Discrete:
    """Follows the culprit's value as long as it is discrete. A floating-point value, such as a rounded one, counts as
    discrete if only discrete ops use it. Otherwise the part consists of the culprit alone and has no uses.
    """
    topology, ops = suspect.topology, suspect.topology.trace.ops
    influence = topology.influence(suspect.target).hops
    order, uses, seen = [suspect.culprit], [], {suspect.culprit}

    def is_discrete(op: int) -> bool:
        return not any(is_float(tensor.dtype) for tensor in ops[op].outputs)

    for op in order:  # grows while it is walked
        for consumer, edge in topology.consumers[op]:
            if influence[consumer] < 0:
                continue
            users = [user for user, _ in topology.consumers[consumer] if influence[user] >= 0]
            # Zeros and ones that are only compared again are as discrete as the booleans that they were made from.
            counts = is_discrete(consumer) or (ops[consumer].type == "Cast" and users and all(map(is_discrete, users)))
            if counts and consumer not in seen:
                seen.add(consumer)
                order.append(consumer)
            elif not counts and not is_discrete(op) and op == suspect.culprit:
                return Discrete((suspect.culprit,), ())
            elif not counts:
                uses.append(Use(consumer, edge.input, op))
    return Discrete(tuple(order), tuple(uses))


def cut_suspects(measured: Measured, missing: list[State]) -> Iterator[Suspect]:
    """For each variable that structure cuts off from its target, every op that does it."""
    topology = measured.topology
    for target in sorted({state.target for state in missing}):
        inside = [arrives < 0 for arrives in topology.gradient(target).hops]
        states = [state for state in missing if state.target == target]
        suspects = suspects_at(measured, states, inside, topology.cut_crossings(target))
        yield from (suspect for suspect in suspects if not _is_handed_back_as_argument(suspect))


def _is_handed_back_as_argument(suspect: Suspect) -> bool:
    """Whether the op belongs to a custom gradient that returns a gradient for an argument which contains the variable.
    Its op lists the results next to the arguments, and these never pass a gradient: the op that cuts the variable off
    comes later.
    """
    if suspect.op.type != "IdentityN" or suspect.op.custom_gradient is None:
        return False
    topology = suspect.topology
    readers = topology.readers[suspect.state.variable]
    answered = {edge.op for edge in suspect.op.inputs if edge.passes == "yes" and edge.op >= 0}
    return any(not (topology.made_by(op) | {op}).isdisjoint(readers) for op in answered)


def covered_suspects(measured: Measured, penalised: list[State]) -> Iterator[Suspect]:
    """For each variable whose only gradient is that of a penalty, every op that cuts it off from the rest."""
    topology = measured.topology
    for target in sorted({state.target for state in penalised}):
        influence, gradient = topology.influence(target).hops, topology.gradient(target).hops
        inside = [arrives < 0 for arrives in gradient]
        states = [state for state in penalised if state.target == target]
        # The penalised value may be the one that leads to the cut.
        shared = {reader for state in states for reader in topology.readers[state.variable] if gradient[reader] >= 0}
        for reader in shared:
            inside[reader] = True
        beside = [
            Crossing(reader, consumer, consumer, edge)
            for reader in shared
            for consumer, edge in topology.consumers[reader]
            if influence[consumer] >= 0 and not passes_gradient(edge)
        ]
        yield from suspects_at(measured, states, inside, [*topology.cut_crossings(target), *beside])


def birth_suspects(measured: Measured, troubled: list[State], *, zero: bool) -> Iterator[Suspect]:
    """For each variable whose gradient is zero, or else not finite: every op where it becomes so."""
    topology = measured.topology
    for target in sorted({state.target for state in troubled}):
        known, bad = measured.zero_ops(target) if zero else measured.nonfinite_ops(target)
        arrives = topology.gradient(target).hops
        goal = topology.trace.targets[target].op
        inside = [hops >= 0 and op != goal and (not known[op] or bad[op]) for op, hops in enumerate(arrives)]
        states = [state for state in troubled if state.target == target]
        readers = {reader for state in states for reader in topology.readers[state.variable]}
        for reader in readers:
            # The problem is in the sum over its reads; if the reads themselves are fine, the search continues at the
            # next op.
            inside[reader] = arrives[reader] >= 0

        def troubling(
            user: int, producer: int, inside: list[bool] = inside, bad: list[bool] = bad, topology: Topology = topology
        ) -> bool:
            # The iterations of a loop use its results, and nothing is known about them.
            return bad[user] if topology.trace.ops[producer].type in LOOPS else inside[user]

        crossings = [
            Crossing(producer, consumer, consumer, edge)
            for producer, is_inside in enumerate(inside)
            # A sum is not finite if one of its terms is not; the other terms then show nothing new.
            if is_inside and (zero or not any(troubling(user, producer) for user in topology.onward(producer)))
            for consumer, edge in topology.consumers[producer]
            if passes_gradient(edge) and arrives[consumer] >= 0 and not inside[consumer]
        ]
        if zero:
            crossings = _followed_through(measured, target, inside, crossings)
        exact = [bad[op] or op in readers for op in range(len(inside))]
        yield from suspects_at(measured, states, inside, crossings, exact)


def _followed_through(measured: Measured, target: int, inside: list[bool], crossings: list[Crossing]) -> list[Crossing]:
    """A part of a joined tensor gets zero while the rest does not: the search continues after the join. If a part that
    is taken out of it again gets only zeros, the join counts as inside from here on. Otherwise the search ends at the
    op at which the zeros in the gradient begin.
    """
    topology = measured.topology
    found, joints = [], set()
    for crossing in crossings:
        joint = crossing.consumer
        if topology.trace.ops[joint].type not in ROUTING:
            found.append(crossing)
        elif any(inside[user] for user in topology.onward(joint)):
            joints.add(joint)
        else:
            found.append(_where_zeros_begin(measured, target, crossing))
    for joint in joints:
        inside[joint] = True
    return found


def _where_zeros_begin(measured: Measured, target: int, crossing: Crossing) -> Crossing:
    way = measured.topology.gradient(target).from_op(crossing.consumer)
    for op, after in pairwise(way):
        here, there = measured.of_op(target, op), measured.of_op(target, after)
        if here is None or there is None or not here.zero_fraction:
            break
        if there.zero_fraction < here.zero_fraction / 2:
            return replace(crossing, culprit=after, handed_by=op)
    return crossing


def hidden_suspects(measured: Measured, quiet: list[State]) -> Iterator[Suspect]:
    """For targets that are not finite, of those variables whose gradient does not show it: where the gradient stops
    being finite.

    All variables that the target depends on share these suspects. Where no gradient is bad at all, the target itself
    is the suspect.
    """
    topology = measured.topology
    for target, described in enumerate(topology.trace.targets):
        hiding = ("connected", "zero", "exploding")
        states = [state for state in quiet if state.target == target and state.status in hiding]
        if measured.loss_is_finite(target) or not states or described.op < 0:
            continue
        _, bad = measured.nonfinite_ops(target)
        arrives = topology.gradient(target).hops
        births = [
            (consumer, producer)
            for producer, is_bad in enumerate(bad)
            if is_bad
            for consumer, edge in topology.consumers[producer]
            if passes_gradient(edge) and arrives[consumer] >= 0 and not bad[consumer]
        ]
        for state in states:
            for culprit, producer in births or [(described.op, -1)]:
                yield Suspect(measured, state, culprit, producer)


def flat_slopes(measured: Measured) -> Iterator[Suspect]:
    """If an inner gradient is differentiated again and the result is exactly zero: the op of that gradient whose value
    is constant on each piece of a piecewise linear function."""
    topology = measured.topology
    ops, targets = topology.trace.ops, topology.trace.targets
    for entry in topology.trace.variable_gradients:
        goal, gradient = targets[entry.target].op, measured.of_variable(entry)
        if gradient is None or not is_zero(gradient) or not is_slope(topology.trace, entry.target):
            continue
        straight = [op for op in (goal, *topology.made_by(goal)) if ops[op].backward and ops[op].type in STRAIGHT]
        if straight:
            state = State(entry.variable, "zero", entry.target, entry, gradient, receives=True)
            yield Suspect(measured, state, max(straight), -1)


def suspects_at(
    measured: Measured,
    states: list[State],
    inside: list[bool],
    crossings: list[Crossing],
    exact: list[bool] | None = None,
) -> Iterator[Suspect]:
    """The first crossings on the paths of each variable out of a region, as suspects."""
    topology = measured.topology
    met = topology.met_first(inside, crossings)
    for state in states:
        bits = 0
        for reader in topology.readers[state.variable]:
            bits |= met[reader]
        for place in members(bits):
            crossing = crossings[place]
            certain = exact is None or exact[crossing.producer]
            producer = crossing.handed_by if crossing.handed_by >= 0 else crossing.producer
            yield Suspect(measured, state, crossing.culprit, producer, certain)
