"""The summary of a step in one sentence, and what is not known about the step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tb_gradflow.analyse.causes.catalogue import BY_FAMILY, CATALOGUE
from tb_gradflow.analyse.causes.wrong_value.normalised_over_batch import is_beside
from tb_gradflow.analyse.evidence.by_hand import is_given
from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.graph.dropped_layer import dropped_layer
from tb_gradflow.analyse.graph.inner_gradients import forward_of, is_slope
from tb_gradflow.analyse.graph.op_sets import STRAIGHT
from tb_gradflow.analyse.step.measured import VANISHING_BELOW, Measured
from tb_gradflow.analyse.step.movement import movement_of
from tb_gradflow.analyse.step.status import State
from tb_gradflow.analyse.user_code.definitions import are_built_before
from tb_gradflow.analyse.words.fields import FROM_ONE_TERM
from tb_gradflow.analyse.words.forward_pass import CAUSES as SPOKEN_OF
from tb_gradflow.analyse.words.names import called, file_name, place_of
from tb_gradflow.record.report import Finding
from tb_gradflow.record.schema import Trace

_SMALL = ("vanishing", "zero")
_PLIGHTS = {
    "disconnected": "no gradient", "unused": "no gradient", "integer": "no gradient", "error": "no gradient",
    "zero": "a gradient of zero",
    "nan": "NaN", "inf": "infinite gradients", "vanishing": "a gradient close to zero", "exploding": "huge gradients",
}  # fmt: skip

_IN_PART = "a gradient in only some elements"
# What cuts off a variable may also cut off a part of it.
_CUTTING = {cause.name for family in ("no_derivative", "left_graph", "unused", "flat") for cause in BY_FAMILY[family]}


def summary_of(measured: Measured, states: Sequence[State], findings: Sequence[Finding]) -> str:
    """The state of the run, in one sentence."""
    trace = measured.topology.trace
    trainable = [state for state in states if trace.variables[state.variable].trainable]
    loud = [finding for finding in findings if finding.severity != "info"]
    if measured.gradients is None and loud and loud[0].cause == "index_out_of_range":
        return CATALOGUE[loud[0].cause].headline
    if any(finding.cause == "not_measured" and not finding.variables for finding in findings):
        return "Not verified: no gradient was seen in this step."
    if not trainable:
        return f"Nothing is trained: {_none(len(states))} trainable."
    noun = _noun(trace.variables[state.variable].computed for state in trainable)
    if measured.gradients is None and (not loud or (loud[0].cause, loud[0].severity) == ("not_measured", "warning")):
        return "Not verified: no step was completed, and nothing was measured."
    if not loud:
        told = {name for finding in findings for name in finding.variables}
        fine = [state for state in trainable if state.status in ("connected", "exploding")]
        unseen = sum(state.status == "not_measured" and state.is_requested for state in trainable)
        if unseen:
            return f"Not verified: {unseen} of {_count(len(trainable), noun)} were not measured."
        if len(fine) == len(trainable) and measured.rest is not None and not measured.rest.moved:
            return (
                f"The gradient reaches {_all(len(trainable), noun)}, but none of the {measured.rest.steps} recorded "
                "steps has changed one."
            )
        if len(fine) == len(trainable):
            return f"Healthy: the gradient reaches {_all(len(trainable), noun)}{_silent_terms(measured, findings)}."
        others = [state for state in trainable if state not in fine]
        if not fine and all(state.status in _SMALL and measured.is_small(state.target) for state in others):
            return "Healthy: the loss is close to zero, and so is the gradient of " + _all(len(trainable), noun) + "."
        faded = {name for finding in findings if finding.cause == "vanishing_depth" for name in finding.variables}
        stopped = [state for state in others if _name(trace, state) in faded and _has_stopped(measured, state)]
        if stopped:
            subject = "the gradient" if len(stopped) == 1 else "the gradients"
            verb = "has" if len(stopped) == 1 else "have"
            whole = _count(len(trainable), noun)
            return f"No problem was found, but {subject} of {len(stopped)} of {whole} {verb} come close to zero."
        healthy = "Healthy: the gradient" if fine else "No problem was found, but no gradient was seen: it"
        return f"{healthy} reaches {len(fine)} of {_count(len(trainable), noun)}" + _rest(
            sum(_name(trace, state) in told for state in others),
            sum(_is_nobodys(state) for state in others if _name(trace, state) not in told),
        )
    of_variables = [finding for finding in loud if finding.variables]
    if not of_variables:
        return CATALOGUE[loud[0].cause].headline
    first = of_variables[0]
    # A finding may name a variable of an earlier trace, in which the problem began, that this trace does not have.
    status = {_name(trace, state): state.status for state in states}
    plights = {name: _PLIGHTS[each] for name, each in status.items() if each in _PLIGHTS}
    if _is_beside_the_loss(measured, first) and status.get(first.variables[0]) == "connected":
        return f"The output of the model is always 1{_because(measured, first)}"
    if first.cause == "normalised_over_batch" and is_beside(measured.topology, first.culprit):
        return f"The output of the model is normalised over the wrong axis{_because(measured, first)}"
    if first.cause == "second_order_missing" and is_slope(trace, first.target):
        return f"A second derivative is zero everywhere{_because(measured, first).replace(' is zero.', '.')}"
    if first.cause == "frozen_by_flag" and trainable:
        number = len(first.variables)
        is_frozen, whose = ("is frozen", "its layer is") if number == 1 else ("are frozen", "their layers are")
        return f"{number} variable{'s' * (number > 1)} {is_frozen}, although {whose} trainable."
    affected = {name for finding in loud for name in finding.variables}
    plight = plights.get(first.variables[0], CATALOGUE[first.cause].plight)
    if FROM_ONE_TERM in first.message:
        plight = FROM_ONE_TERM
    elif first.cause in _CUTTING and any(
        _is_in_part(state) for state in states if _name(trace, state) in first.variables
    ):
        plight = _IN_PART
    if plight != "NaN" and any(finding.cause == "nonfinite_weights" for finding in loud):
        plight = CATALOGUE["nonfinite_update"].plight
    same = [name for name in affected if plights.get(name) == plight] or list(first.variables)
    verb = "gets" if len(same) == 1 else "get"
    return f"{len(same)} of {_count(len(trainable), noun)} {verb} {plight}{_because(measured, first)}"


def _has_stopped(measured: Measured, state: State) -> bool:
    """Whether its gradient was of normal size in the first recorded step and has vanished, although the loss is not
    close to zero: the training has come to a minimum, or to nothing."""
    began = measured.first_gradient(state.variable)
    return state.status in _SMALL and began >= VANISHING_BELOW and not measured.is_small(state.target)


def _name(trace: Trace, state: State) -> str:
    return trace.variables[state.variable].name


def _is_in_part(state: State) -> bool:
    gradient = state.gradient
    return state.status == "connected" and gradient is not None and 0 < gradient.zero_fraction < 1


def _silent_terms(measured: Measured, findings: Sequence[Finding]) -> str:
    """The terms of a loss that contribute nothing to a gradient that arrives."""
    ops = {finding.culprit for finding in findings if finding.cause == "term_teaches_nothing"} - {-1}
    names = [f"`{term.name}`" for term in measured.topology.trace.terms if term.op in ops]
    if not names:
        return ""
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f", but the term{'s' * (len(names) > 1)} {listed} contribute{'s' * (len(names) == 1)} nothing to it"


def _is_beside_the_loss(measured: Measured, finding: Finding) -> bool:
    """Whether a softmax that is always 1 only computes the output, while the loss uses its input: the variables then
    get the right gradient."""
    if finding.cause != "softmax_single_class" or finding.culprit < 0 or finding.target < 0:
        return False
    return measured.topology.influence(finding.target).hops[finding.culprit] < 0


def _noun(computed: Iterable[bool]) -> str:
    """What a gradient is requested for: variables, tensors, or both."""
    kinds = set(computed)
    return "source" if len(kinds) > 1 else "tensor" if True in kinds else "trainable variable"


def _is_nobodys(state: State) -> bool:
    """No gradient is requested for it, as for a moving average or a target network."""
    return state.status in ("unused", "disconnected", "not_measured") and not state.is_requested


def _rest(explained: int, nobodys: int) -> str:
    """The end of the sentence, about the variables that the loss does not reach."""
    if explained and nobodys:
        verb = "is" if explained == 1 else "are"
        return f"; {explained} {verb} explained, and no gradient is requested for the other{_many(nobodys)}."
    if explained:
        return f"; the other{' is' if explained == 1 else f' {explained} are'} explained."
    return f"; no gradient is requested for the other{_many(nobodys)}." if nobodys else "."


def _many(number: int) -> str:
    return "" if number == 1 else f" {number}"


def _because(measured: Measured, finding: Finding) -> str:
    trace, rest = measured.topology.trace, measured.rest
    many, cause = "them" if len(finding.variables) > 1 else "it", CATALOGUE[finding.cause]
    source = finding.source
    line = f" in {file_name(source.file)}:{source.line}" if source is not None else ""
    if finding.cause == "tape_scope" and trace.ops and trace.targets[finding.target].passed:
        return f": `None` was passed for {many}{line}."
    if finding.culprit < 0 and is_given(measured.topology, finding.target):
        return "."
    if finding.culprit < 0 and cause.without_op:
        since = f" since step {rest.since}" if rest is not None and rest.moved else ""
        if finding.cause == "gradient_not_applied" and _is_replaced(measured, finding):
            return f": the step assigns {many} other values afterwards."
        if finding.cause == "gradient_not_applied" and is_held_by_optimizer(measured, finding):
            return f": the optimizer does not move {many}."
        if _is_made_before(measured, finding):
            by_hand = not trace.layers or trace.targets[finding.target].source is not None
            return f": no gradient is requested for {many}." if by_hand else f": the model does not track {many}."
        return f": {cause.without_op.format(line=line, them=many, since=since)}."
    if finding.culprit < 0 or finding.cause == "variable_rebound":
        return "."
    shown, verb = finding.culprit, cause.verb
    if cause.shows_forward_op:
        # The user's own op: the op of its gradient means nothing to the user.
        shown = forward if (forward := forward_of(trace, shown)) >= 0 else shown
    if finding.cause == "second_order_missing" and trace.ops[finding.culprit].type in STRAIGHT:
        verb = "is zero"
    if finding.cause == "output_not_used" and (layer := dropped_layer(measured.topology, shown, finding.target)):
        return f": the output of `{layer.name}`{line} {verb}."
    where = place_of(trace, shown).strip(" ()")
    place = f" in {where.removeprefix('in ')}" if where else ""
    name = cause.subject.format(op=called(trace, shown).strip("`"))
    return f": {name}{place} {verb.format(them=many)}."


def _is_replaced(measured: Measured, finding: Finding) -> bool:
    trace = measured.topology.trace
    return any(trace.variables[each.variable].name in finding.variables for each in trace.replaced)


def is_held_by_optimizer(measured: Measured, finding: Finding) -> bool:
    """Whether this step itself shows that the optimizer keeps the variables of a finding fixed."""
    names = [each.name for each in measured.topology.trace.variables]
    return movement_of(measured, names.index(finding.variables[0])) is not None and measured.rest is None


def _is_made_before(measured: Measured, finding: Finding) -> bool:
    """Whether the model does not track the variables of the finding, and the step does not create their layers."""
    trace = measured.topology.trace
    made = {each.name for each in trace.variables if each.made}
    return finding.cause == "untracked_variable" and (
        made.isdisjoint(finding.variables) or are_built_before(trace, finding.variables)
    )


def unverified_in(measured: Measured, findings: Sequence[Finding], inexact: Sequence[Suspect]) -> tuple[str, ...]:
    """The facts that are not known, one sentence each."""
    trace = measured.topology.trace
    said = list(trace.notes)
    if measured.gradients is None:
        said.append("No step was completed, so nothing was measured: this report follows from the graph alone.")
    elif any(entry.outcome == "value" and measured.of_variable(entry) is None for entry in trace.variable_gradients):
        said.append("Some gradients were not measured in this step; the graph shows that they arrive.")
    unknown = [op.name for op in trace.ops if any(edge.passes == "unknown" for edge in op.inputs)]
    if unknown:
        said.append(f"Whether `{unknown[0]}` and similar ops pass a gradient is not known; it is assumed that they do.")
    for check in trace.gradient_checks:
        if check.problem and all(finding.culprit != check.op for finding in findings):
            whose = f" of `{check.function}`" if check.function else ""
            said.append(f"The custom gradient{whose} was not compared with the derivative: {check.problem}.")
    if _is_inferred(measured, findings):
        said.append(_INFERRED)
    for name in dict.fromkeys(trace.ops[suspect.culprit].name for suspect in inexact if suspect.culprit >= 0):
        said.append(f"The gradients inside `{name}` were not recorded, so the exact op inside it cannot be named.")
    return tuple(said)


_INFERRED = (
    "The forward pass of this step was not measured, so where it stops being finite is inferred from its gradients. It "
    "is measured where the step can be run again: in `explain`, and in a training with one replica, one step per "
    "execution, Keras 3 and no side effects; a recorded step also has to run on a CPU."
)


def _is_inferred(measured: Measured, findings: Sequence[Finding]) -> bool:
    """Whether a finding of this step names an op at which values stop being finite, but these values were not
    measured."""
    if measured.alone or measured.values is not None or measured.onset is not None:
        return False
    return any(
        each.severity == "error"
        and each.culprit >= 0
        and each.cause in SPOKEN_OF
        and not each.examples
        and each.began is None
        for each in findings
        if not measured.loss_is_finite(each.target)
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _none(number: int) -> str:
    return "the only variable is not" if number == 1 else f"none of the {number} variables is"


def _all(number: int, noun: str) -> str:
    return f"the {noun}" if number == 1 else f"both {noun}s" if number == 2 else f"all {number} {noun}s"
