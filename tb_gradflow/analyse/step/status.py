"""The status of each variable in a training step. Structure comes first: TensorFlow turns a missing gradient into zeros
at the boundary of a function, and where the caller requested it, and such a zero is still a disconnection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.step.measured import VANISHING_BELOW, Measured, is_zero
from tb_gradflow.analyse.step.not_computed import inverting_ops, is_refused_by_xla
from tb_gradflow.record.report import GradientReport, Status
from tb_gradflow.record.schema import Trace, VariableGradient

EXPLODING_ABOVE = 1e4

# With several losses, a variable has the best status from any of them, except that one non-finite gradient makes the
# sum non-finite.
_PREFERENCE: tuple[Status, ...] = (
    "nan", "inf", "exploding", "connected", "not_measured", "vanishing", "zero", "error", "disconnected", "unused",
    "integer",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class State:
    """The result for a variable.

    Attributes:
        variable: Index of the variable.
        status: Its status.
        target: The target that decided the status; -1 if the trace has none.
        entry: The tape's result that decided it; None if no gradient was requested for this variable.
        gradient: The statistics; None if no gradient arrived, or none was measured.
        receives: Whether the target's gradient reaches the variable according to the structure.
        penalised: Whether a penalty on the variable gives it a gradient, and `status` is about the rest.
        beside: Whether only one term of the loss is meant, which gives it no gradient, while another one does.
        zeros: If only a part of its elements is meant, their share; it gets a gradient of exactly zero.
    """

    variable: int
    status: Status
    target: int
    entry: VariableGradient | None
    gradient: GradientReport | None
    receives: bool
    penalised: bool = False
    beside: bool = False
    zeros: float = 0.0

    @property
    def is_requested(self) -> bool:
        """Whether a gradient was requested: none is for a target network, or a moving average."""
        return self.entry is not None and self.entry.outcome != "not_asked"


def states(topology: Topology, measured: Measured) -> tuple[State, ...]:
    """The state of every variable, in the order of the trace."""
    entries: dict[int, list[VariableGradient]] = {}
    for entry in topology.trace.variable_gradients:
        entries.setdefault(entry.variable, []).append(entry)
    unregistered = {target: _behind_error(topology, target) for target in range(len(topology.trace.targets))}
    fatal = _fatal_request(topology, measured)
    return tuple(
        _state(topology, measured, variable, fatal.get(variable) or entries.get(variable, []), unregistered)
        for variable in range(len(topology.trace.variables))
    )


def _fatal_request(topology: Topology, measured: Measured) -> dict[int, list[VariableGradient]]:
    """The results of the last request before a step failed, by variable, if it gave none of them a gradient: code such
    as `-second_derivative` fails with `None`. What they get from an earlier request, such as the first derivative,
    decides nothing then."""
    asked = [entry for entry in topology.trace.variable_gradients if entry.outcome != "not_asked"]
    last = [entry for entry in asked if entry.target == max(each.target for each in asked)]
    if measured.gradients is not None or any(entry.outcome != "none" for entry in last):
        return {}
    return {entry.variable: [entry] for entry in last}


def in_vain(topology: Topology, found: Sequence[State]) -> list[State]:
    """The results of variables for a loss that depends on them, whose gradient was requested for many of them, and that
    gave none of them a gradient. They get a gradient from another loss, such as that of an inner loop, and that one
    decides their status. A loss without any gradient is reported anyway.
    """
    asked: dict[int, list[VariableGradient]] = {}
    for entry in topology.trace.variable_gradients:
        if entry.outcome != "not_asked":
            asked.setdefault(entry.target, []).append(entry)
    empty = [entries for entries in asked.values() if all(entry.outcome == "none" for entry in entries)]
    return [
        State(
            entry.variable, "disconnected", entry.target, entry, None, topology.receives(entry.variable, entry.target)
        )
        for entries in empty
        for entry in entries
        if _is_trained(topology, entries, entry.variable)
        if _is_taught_elsewhere(topology, found[entry.variable], entry)
    ]


def _is_taught_elsewhere(topology: Topology, state: State, entry: VariableGradient) -> bool:
    elsewhere = state.target != entry.target and state.receives
    # Where nothing blocks it, the tape saw no forward pass.
    unseen = not entry.watched or not topology.receives(entry.variable, entry.target)
    depends = topology.influences(entry.variable, entry.target)
    return elsewhere and depends and unseen


def _is_trained(topology: Topology, entries: Sequence[VariableGradient], variable: int) -> bool:
    """Whether the gradient of a variable is missed. That of a tensor is, if no variable's was requested with it."""
    variables = topology.trace.variables
    of_tensors = all(variables[entry.variable].computed for entry in entries)
    return variables[variable].trainable and (of_tensors or not variables[variable].computed)


def without_noise(state: State) -> State:
    """The same for a gradient that is only rounding noise."""
    return replace(state, status="vanishing") if state.status == "connected" else state


def _state(
    topology: Topology,
    measured: Measured,
    variable: int,
    entries: list[VariableGradient],
    unregistered: dict[int, frozenset[int]],
) -> State:
    candidates = [
        _answered(topology, measured, entry, unregistered[entry.target])
        for entry in entries
        if entry.outcome != "not_asked"
    ]
    best = min(candidates, key=lambda state: _PREFERENCE.index(state.status), default=None)
    if best is None:
        best = _not_asked(topology, variable, entries)
    if is_integer_source(topology.trace, variable):
        return replace(best, status="integer")
    if topology.trace.variables[variable].trainable:
        return best
    return State(variable, "frozen", best.target, best.entry, best.gradient, best.receives)


def is_integer_source(trace: Trace, variable: int) -> bool:
    """Whether a gradient is requested for an integer tensor, which has none."""
    source = trace.variables[variable]
    return source.computed and source.dtype.startswith(("int", "uint"))


def _answered(topology: Topology, measured: Measured, entry: VariableGradient, unregistered: frozenset[int]) -> State:
    gradient = measured.of_variable(entry)
    # The structure says nothing about a gradient that was computed by hand.
    by_hand = topology.trace.targets[entry.target].by_hand and entry.outcome == "value"
    receives = by_hand or topology.receives(entry.variable, entry.target)
    if entry.outcome == "value" and gradient is not None and not is_zero(gradient):
        status = _of_numbers(gradient)
    elif _raises(topology, entry, unregistered):
        status = "error"
    elif entry.outcome == "value" and gradient is None and topology.trace.targets[entry.target].op < 0:
        status = "not_measured"  # there was a gradient, and nothing else is known
    elif receives and entry.outcome != "none":
        status = "not_measured" if gradient is None else "zero" if is_zero(gradient) else "connected"
    else:
        status = "disconnected" if topology.influences(entry.variable, entry.target) else "unused"
    return State(entry.variable, status, entry.target, entry, gradient, receives)


def _raises(topology: Topology, entry: VariableGradient, unregistered: frozenset[int]) -> bool:
    if is_refused_by_xla(topology, entry.variable, entry.target):
        return True
    return entry.outcome == "error" and (entry.variable in unregistered or not unregistered)


def _of_numbers(gradient: GradientReport) -> Status:
    if gradient.nan_count:
        return "nan"
    if gradient.inf_count:
        return "inf"
    if gradient.max_abs > EXPLODING_ABOVE:
        return "exploding"
    return "vanishing" if 0 < gradient.max_abs < VANISHING_BELOW else "connected"


def _not_asked(topology: Topology, variable: int, entries: list[VariableGradient]) -> State:
    """A variable whose gradient was not requested gets none, even if one would arrive. Calls that request only
    gradients of tensors, such as that of an image, train nothing, so they leave nothing out.
    """
    of_tensors = topology.tensor_targets
    if not topology.trace.targets:
        return State(variable, "not_measured", -1, None, None, False)
    targets = [entry.target for entry in entries] or range(len(topology.trace.targets))
    training = [target for target in targets if target not in of_tensors]
    watched = {entry.target: entry for entry in entries}
    if targets and not training and topology.trace.variables[variable].trainable:
        return State(variable, "not_measured", targets[0], watched.get(targets[0]), None, False)
    targets = training
    for reaches in (topology.receives, topology.influences):
        for target in targets:
            if reaches(variable, target):
                receives = topology.receives(variable, target)
                return State(variable, "disconnected", target, watched.get(target), None, receives)
    return State(variable, "unused", min(targets, default=-1), None, None, False)


def _behind_error(topology: Topology, target: int) -> frozenset[int]:
    """Variables for which requesting the gradient of `target` raises an error: one path to an op whose gradient cannot
    be built is enough, even if there are other paths."""
    refused = {crossing.producer for crossing in topology.raising_crossings(target)}
    refused.update(inverting_ops(topology, target))
    if not refused:
        return frozenset()
    behind = topology.leading_to(refused)
    return frozenset(variable for variable, readers in enumerate(topology.readers) if not behind.isdisjoint(readers))
