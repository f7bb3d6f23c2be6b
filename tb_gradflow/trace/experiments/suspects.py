"""The ops of a step that may be why variables get no gradient."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tb_gradflow.analyse.evidence.suspects import covered_suspects
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.report.findings import findings_of
from tb_gradflow.analyse.report.verdicts import judged_of
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.status import State, states
from tb_gradflow.record.report import Finding, Status
from tb_gradflow.record.schema import StepValues, Trace
from tb_gradflow.trace.engine.calls import places
from tb_gradflow.trace.engine.draws import is_random, is_shareable
from tb_gradflow.trace.experiments.inlets import Inlet
from tb_gradflow.trace.experiments.loss_alone import Pair, Suspected
from tb_gradflow.trace.graph.build_trace import Numbered
from tb_gradflow.trace.graph.flat_ops import FlatOp

_MOST = 6
"""How many are looked at."""

_FEW, _MOST_INPUTS = 2, 2
"""The same if gradients are computed for each of their inputs."""


def suspected(
    numbered: Numbered, measured: Mapping[str, Any], variables: Collection[int], function: Any
) -> list[Suspected]:
    """Those of these variables, which get no gradient in a step of which this was measured; `function` is the
    `AtomicFunction` that takes its gradients."""
    topology = Topology(numbered.trace)
    step = Measured(topology, measured["gradients"], measured["variables"], tuple(measured["losses"]))
    listed = [each for each in states(topology, step) if each.variable in variables]
    once = _called_once(function)
    found: dict[int, Suspected] = {}
    for op, producer, target in _blamed(step, listed):
        if op not in found and len(found) < _MOST and _is_plain(numbered.ops[op]):
            inlet = _inlet(numbered, op, producer)
            outputs = numbered.ops[op].tensors
            if inlet is not None and inlet.op.graph is outputs[0].graph and id(inlet.op.graph) in once:
                found[op] = Suspected(op, target, inlet, outputs)
    return list(found.values())


def only_drawn_from(numbered: Numbered, pairs: Mapping[int, Sequence[int]]) -> set[int]:
    """Those of some variables from which the targets with these numbers only depend by draws. When a step runs again, a
    random op is given what it drew, so it does not react."""
    trace, found = numbered.trace, set()
    for variable, targets in pairs.items():
        ends = [trace.targets[target].op for target in targets]
        reached = set(walked(ends, lambda op: () if _is_held(numbered.ops[op]) else _sources(trace, op)))
        readers = [op for op, each in enumerate(trace.ops) if each.reads == variable]
        if reached.isdisjoint(readers) and any(_is_held(numbered.ops[op]) for op in reached):
            found.add(variable)
    return found


def _sources(trace: Trace, op: int) -> list[int]:
    return [edge.op for edge in trace.ops[op].inputs]


def _is_held(flat: FlatOp) -> bool:
    node = flat.op.node_def
    return is_random(node) and not is_shareable(node)


class Told:
    """What the report says of a step, as far as it is more than information.

    Args:
        numbered: The structure of the step.
        measured: What was measured in it.
        values: Those of its forward pass, if they were measured.
    """

    def __init__(self, numbered: Numbered, measured: Mapping[str, Any], values: StepValues | None) -> None:
        topology = Topology(numbered.trace)
        losses = tuple(measured["losses"])
        step = Measured(topology, measured["gradients"], measured["variables"], losses, values=values)
        self._numbered = numbered
        self._states = states(topology, step)
        found = findings_of(step, self._states, ()).findings
        self._findings = [each for each in found if each.severity != "info" and each.target >= 0]

    def pairs(self, statuses: Collection[Status]) -> list[Pair]:
        """The variables of its findings that have one of these statuses, with the targets."""
        found = ((each.target, variable) for each in self._findings for variable in self._among(each, statuses))
        return list(dict.fromkeys(found))

    def suspects(self, statuses: Collection[Status], function: Any) -> list[Suspected]:
        """The ops that are why, with each of their inputs; `function` is the `AtomicFunction` that takes the
        gradients."""
        once = _called_once(function)
        found: dict[int, list[Suspected]] = {}
        for each in self._findings:
            if each.culprit >= 0 and len(found) < _FEW and self._among(each, statuses):
                flat = self._numbered.ops[each.culprit]
                if _is_plain(flat) and id(flat.tensors[0].graph) in once:
                    # The last one first, such as a divisor.
                    given = reversed(list(enumerate(flat.op.inputs)))
                    inlets = [Inlet(flat.op, place) for place, tensor in given if tensor.dtype.is_floating]
                    found[each.culprit] = [
                        Suspected(each.culprit, each.target, inlet, flat.tensors) for inlet in inlets[:_MOST_INPUTS]
                    ]
        return [suspect for each in found.values() for suspect in each]

    def _among(self, finding: Finding, statuses: Collection[Status]) -> list[int]:
        names = {self._numbered.trace.variables[each.variable].name: each for each in self._states}
        named = (names[name] for name in finding.variables if name in names)
        return [each.variable for each in named if each.status in statuses]


def _blamed(step: Measured, listed: Sequence[State]) -> Iterator[tuple[int, int, int]]:
    """Ops, each with the one whose gradient is lost there and the target: first those that the report names."""
    judged = judged_of(step, listed)
    yield from ((each.culprit, each.suspect.producer, each.suspect.target) for each in judged if each.culprit >= 0)
    for each in judged:
        yield from ((op, -1, each.suspect.target) for op in each.others if op >= 0)
    zero = [each for each in listed if each.status == "zero"]
    yield from ((each.culprit, each.producer, each.target) for each in covered_suspects(step, zero))


def _inlet(numbered: Numbered, op: int, producer: int) -> Inlet | None:
    """What goes into an op, from another one if it does; `None` if nothing does that has a derivative."""
    waiting, seen = [op], {op}
    for each in waiting:  # grows while it is walked
        flat = numbered.ops[each]
        edges = sorted(numbered.trace.ops[each].inputs, key=lambda edge: edge.op != producer)
        if not _is_plain(flat):
            return None
        for edge in edges:
            if edge.op >= 0 and flat.op.inputs[edge.input].dtype.is_floating:
                return Inlet(flat.op, edge.input)
        waiting += [edge.op for edge in edges if edge.op >= 0 and edge.op not in seen]
        seen.update(waiting)
    return None


def _is_plain(flat: FlatOp) -> bool:
    """Whether it is an op of the step, not a part of one, and computes numbers anew when the step runs again."""
    is_whole = flat.type == flat.op.type and len(flat.tensors) == len(flat.op.outputs)
    has_numbers = bool(flat.tensors) and all(_has_numbers(each.dtype) for each in flat.tensors)
    return is_whole and has_numbers and not _is_held(flat)


def _has_numbers(dtype: Any) -> bool:
    return bool(dtype.is_floating or dtype.is_integer or dtype.is_bool)


def _called_once(function: Any) -> set[int]:
    """The ids of the graphs that run at most once."""
    called = [place for place in places(function) if place.graph is not None]
    ids = [id(place.graph) for place in called]
    return {id(place.graph) for place in called if not place.in_loop and ids.count(id(place.graph)) == 1}
