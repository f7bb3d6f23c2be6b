"""One sentence on a step, and what it leaves open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tb_gradflow.analyse.causes.by_hand import is_given
from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.graph.op_sets import STRAIGHT
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.movement import movement_of
from tb_gradflow.analyse.step.status import State
from tb_gradflow.analyse.words.names import called, file_name, place_of
from tb_gradflow.analyse.words.own_gradient import forward_of
from tb_gradflow.record.report import Finding

_STOPPED = ("disconnected", "unused", "error")
_PLIGHTS = {
    "disconnected": "no gradient", "unused": "no gradient", "integer": "no gradient", "error": "no gradient",
    "zero": "a gradient of zero",
    "nan": "NaN", "inf": "infinite gradients", "vanishing": "next to no gradient", "exploding": "huge gradients",
}  # fmt: skip
# Of those whose gradient is finite and not zero.
_WRONG = {
    "custom_gradient_wrong": "a wrong gradient",
    "variable_rebound": "overwritten by a tensor",
    "nonfinite_update": "values that are not finite",
    "gradient_not_applied": "a gradient that is not applied",
    "loss_not_scaled": "a gradient that is divided away",
    "saturation_clip": "a gradient that a limit holds back",
}


_OF_NO_VARIABLE = {"mask_dropped": "Padding trains like data: a layer does not hand its mask on."}


def summary_of(measured: Measured, states: Sequence[State], findings: Sequence[Finding]) -> str:
    """How the run is, in one sentence."""
    trace = measured.topology.trace
    trainable = [state for state in states if trace.variables[state.variable].trainable]
    loud = [finding for finding in findings if finding.severity != "info"]
    if any(finding.cause == "not_measured" and not finding.variables for finding in findings):
        return "Not verified: no gradient was seen in this step."
    if not trainable:
        return f"Nothing is trained: none of {_count(len(states), 'variable')} is trainable."
    noun = _noun(trace.variables[state.variable].computed for state in trainable)
    if measured.gradients is None and (not loud or loud[0].cause == "not_measured"):
        return "Not verified: no step was completed, and nothing was measured."
    if not loud:
        told = {name for finding in findings for name in finding.variables}
        fine = [state for state in trainable if state.status == "connected"]
        unseen = sum(state.status == "not_measured" and _is_requested(state) for state in trainable)
        if unseen:
            return f"Not verified: {unseen} of {_count(len(trainable), noun)} were not measured."
        if len(fine) == len(trainable):
            return f"Healthy: the loss reaches {_all(len(trainable), noun)}."
        others = [state for state in trainable if state not in fine]
        healthy = "Healthy: the loss" if fine else "Nothing is wrong, and no gradient was seen: the loss"
        return f"{healthy} reaches {len(fine)} of {_count(len(trainable), noun)}" + _rest(
            sum(trace.variables[state.variable].name in told for state in others),
            sum(_is_nobodys(state) for state in others if trace.variables[state.variable].name not in told),
        )
    of_variables = [finding for finding in loud if finding.variables]
    if not of_variables:
        return _OF_NO_VARIABLE.get(loud[0].cause, "Something is wrong, and no single variable's.")
    first = of_variables[0]
    by_name = {trace.variables[state.variable].name: state for state in states}
    affected = {name for finding in loud for name in finding.variables}
    wrong = _WRONG.get(first.cause, "a gradient that teaches nothing")
    plight = _PLIGHTS.get(by_name[first.variables[0]].status, wrong)
    if plight != "NaN" and any(finding.cause == "nonfinite_weights" for finding in loud):
        plight = _WRONG["nonfinite_update"]
    same = [name for name in affected if _PLIGHTS.get(by_name[name].status) == plight] or list(first.variables)
    verb = "gets" if len(same) == 1 else "get"
    return f"{len(same)} of {_count(len(trainable), noun)} {verb} {plight}{_because(measured, first)}"


def _noun(computed: Iterable[bool]) -> str:
    """What a gradient is requested for: variables, tensors, or both."""
    kinds = set(computed)
    return "source" if len(kinds) > 1 else "tensor" if True in kinds else "trainable variable"


def _is_requested(state: State) -> bool:
    return state.entry is not None and state.entry.outcome != "not_asked"


def _is_nobodys(state: State) -> bool:
    """Nobody asks for the gradient of a moving average or of a target network."""
    return state.status in ("unused", "disconnected", "not_measured") and not _is_requested(state)


def _rest(explained: int, nobodys: int) -> str:
    """What there is to say of the variables that the loss does not reach."""
    if explained and nobodys:
        verb = "is" if explained == 1 else "are"
        return f"; {explained} {verb} explained, and no gradient is asked for the other{_many(nobodys)}."
    if explained:
        return f"; the other{' is' if explained == 1 else f' {explained} are'} explained."
    return f"; no gradient is asked for the other{_many(nobodys)}." if nobodys else "."


def _many(number: int) -> str:
    return "" if number == 1 else f" {number}"


# What is to blame where no op is; with the line that the finding shows.
_WITHOUT_OP = {
    "tape_scope": "the tape{line} did not see the way to the loss",
    "tape_not_watching": "the tape{line} does not watch {them}",
    "not_in_gradient_sources": "tape.gradient{line} was not asked for {them}",
    "nonfinite_input": "the batch is not finite",
    "zero_input": "all of the batch is zero",
    "nonfinite_weights": "weights were not finite before the step",
    "nonfinite_update": "the update of this step made them so",
    "untracked": "the model does not list {them}",
    "untracked_variable": "the step makes {them} anew each time",
    "gradient_not_applied": "no recorded step{since} has changed {them}",
    "loss_not_scaled": "the optimizer divides by a loss scale, and the loss{line} was not multiplied with it",
}


_VERBS = {"output_not_used": "is where the way ends"}


def _because(measured: Measured, finding: Finding) -> str:
    trace, rest = measured.topology.trace, measured.rest
    many = "them" if len(finding.variables) > 1 else "it"
    if finding.culprit < 0 and is_given(measured.topology, finding.target):
        return "."
    if finding.culprit < 0 and finding.cause in _WITHOUT_OP:
        source = finding.source
        line = f" in {file_name(source.file)}:{source.line}" if source is not None else ""
        cause = "untracked" if _is_made_before(measured, finding) else finding.cause
        since = f" since step {rest.since}" if rest is not None and rest.moved else ""
        if cause == "gradient_not_applied" and is_held_by_optimizer(measured, finding):
            return f": the optimizer does not move {many}."
        return f": {_WITHOUT_OP[cause].format(line=line, them=many, since=since)}."
    if finding.culprit < 0 or finding.cause == "variable_rebound":
        return "."
    shown, verb, of = finding.culprit, _VERBS.get(finding.cause), ""
    if finding.cause == "second_order_missing":
        # The user's own op: that of its gradient says nothing to them.
        shown = forward if (forward := forward_of(trace, shown)) >= 0 else shown
        verb, of = (
            "is zero" if trace.ops[finding.culprit].type in STRAIGHT else "is missing",
            "the second derivative of ",
        )
    where = place_of(trace, shown).strip(" ()")
    place = f" in {where.removeprefix('in ')}" if where else ""
    name = of + called(trace, shown).strip("`")
    if finding.cause == "python_snapshot":
        name = "a tensor from before the step"
    if verb is None:
        verb = (
            f"cuts {many} off" if finding.cause.startswith(("nondiff", "stop", "integer", "python")) else "is to blame"
        )
    return f": {name}{place} {verb}."


def is_held_by_optimizer(measured: Measured, finding: Finding) -> bool:
    """Whether this very step shows that the optimizer holds the variables of a finding still."""
    names = [each.name for each in measured.topology.trace.variables]
    return movement_of(measured, names.index(finding.variables[0])) is not None and measured.rest is None


def _is_made_before(measured: Measured, finding: Finding) -> bool:
    """Whether the variables of the finding are those that a model does not list, and not made by the step."""
    made = {each.name for each in measured.topology.trace.variables if each.made}
    return finding.cause == "untracked_variable" and made.isdisjoint(finding.variables)


def unverified_in(
    measured: Measured, states: Sequence[State], findings: Sequence[Finding], inexact: Sequence[Suspect]
) -> tuple[str, ...]:
    """What could not be known, a sentence each."""
    trace = measured.topology.trace
    said = list(trace.notes)
    if measured.gradients is None:
        said.append("No step was completed, so nothing was measured: this follows from the structure alone.")
    elif any(entry.outcome == "value" and measured.of_variable(entry) is None for entry in trace.variable_gradients):
        said.append("Some gradients were not measured in this step; structure says that they arrive.")
    unknown = [op.name for op in trace.ops if any(edge.passes == "unknown" for edge in op.inputs)]
    if unknown:
        said.append(f"Whether `{unknown[0]}` and its like pass a gradient is not known; it was taken that they do.")
    for check in trace.gradient_checks:
        if check.problem and all(finding.culprit != check.op for finding in findings):
            whose = f" of `{check.function}`" if check.function else ""
            said.append(f"Whether the custom gradient{whose} is the derivative: {check.problem}.")
    for name in dict.fromkeys(trace.ops[suspect.culprit].name for suspect in inexact if suspect.culprit >= 0):
        said.append(f"The gradients inside `{name}` were not recorded, so the very op in there is not known.")
    return tuple(said)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _all(number: int, noun: str) -> str:
    return f"the {noun}" if number == 1 else f"all {number} {noun}s"
