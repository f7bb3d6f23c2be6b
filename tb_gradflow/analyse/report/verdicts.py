"""From the states of the variables to verdicts: which suspects there are, and which rules are applied to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from tb_gradflow.analyse.causes import precedence
from tb_gradflow.analyse.causes.judge import judge, judge_cuts, judge_zeros
from tb_gradflow.analyse.causes.tape import not_in_gradient_sources, untracked_variable
from tb_gradflow.analyse.evidence.by_hand import is_given
from tb_gradflow.analyse.evidence.parts import is_cut, joined, only_decides, suspects_of_parts
from tb_gradflow.analyse.evidence.penalties import is_penalty_alone
from tb_gradflow.analyse.evidence.suspects import (
    NO_OP,
    Rule,
    Suspect,
    Verdict,
    birth_suspects,
    covered_suspects,
    cut_suspects,
    flat_slopes,
    hidden_suspects,
)
from tb_gradflow.analyse.evidence.terms import suspects_beside_others, suspects_of_terms
from tb_gradflow.analyse.evidence.waiting import waits_its_turn
from tb_gradflow.analyse.graph.stopped import STOPS
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.step.measured import NONFINITE_AFTER, UPDATE_NORM, Measured
from tb_gradflow.analyse.step.status import State, in_vain
from tb_gradflow.record.report import GradientReport, Severity

Judge = Callable[[Iterable[Suspect]], tuple[Suspect, Verdict] | None]


@dataclass(frozen=True, slots=True)
class Judged:
    """One variable's verdict.

    Attributes:
        suspect: The suspect it was found on.
        verdict: The verdict.
        culprit: Index of the op to blame; -1 if none is.
        others: Culprits of the further suspects for the same variable.
    """

    suspect: Suspect
    verdict: Verdict
    culprit: int
    others: tuple[int, ...] = ()


def judged_of(measured: Measured, states: Sequence[State]) -> list[Judged]:
    """A verdict for every variable with a problem, of those that matter to the caller."""
    trace = measured.topology.trace
    if not trace.whole:
        listed = [variable.tracked or variable.made or variable.computed for variable in trace.variables]
        states = [state for state in states if listed[state.variable]]
    states = [state for state in states if not _is_storage(measured.topology, state)]
    spoiled = _judged((without_op(measured, state) for state in states), _by(precedence.WEIGHTS))
    # Other problems in a step that computes with such weights follow from them.
    known = {state.variable for state in states if measured.nonfinite_weights(state.target) and _has_size(state)}
    known.update(each.suspect.state.variable for each in spoiled)
    judged = _judged_by_status(measured, [state for state in states if state.variable not in known])
    # What is not finite may itself be why a gradient of zero has no other reason.
    judged = [each for each in judged if each.verdict.cause != "zero_gradient" or _is_finite(measured, each)]
    known.update(each.suspect.state.variable for each in judged if each.verdict.severity != "info")
    told = {state.target for state in _with(states, "nan", "inf")} | {each.suspect.target for each in spoiled}
    quiet = [state for state in states if state.variable not in known and state.target not in told]
    if measured.gradients is None and not any(each.verdict.severity == "error" for each in judged):
        unseen = [state for state in _with(quiet, "not_measured") if state.target >= 0]
        judged += _judged((without_op(measured, state) for state in unseen), _by(precedence.UNMEASURED))
    judged += _judged(hidden_suspects(measured, quiet), _by(precedence.NOT_FINITE))
    if not any(each.verdict.cause == "second_order_missing" for each in judged):
        judged += _judged(flat_slopes(measured), _by(precedence.FLAT_SLOPE))
    return [*spoiled, *(_as_in_turn(each) for each in judged)]


def _is_finite(measured: Measured, judged: Judged) -> bool:
    return measured.loss_is_finite(judged.suspect.target)


def _judged_by_status(measured: Measured, states: Sequence[State]) -> list[Judged]:
    given = [state for state in states if is_given(measured.topology, state.target) and state.gradient is not None]
    states = [state for state in states if state not in given]
    cut = [state for state in states if state.status in ("disconnected", "error") and not state.receives]
    # A variable that no tape watched and for which no gradient was requested, such as a target network read outside of
    # the tape, is intended.
    missing = [
        state for state in states if state.status in ("disconnected", "error") and state.receives and state.entry
    ]
    # Variables that another loss trains get a second verdict, because this loss trains none.
    vain = in_vain(measured.topology, states) if len(states) == len(measured.topology.trace.variables) else []
    mistaken = {state.target for state in missing if not_in_gradient_sources.others_listed(without_op(measured, state))}
    vain = [state for state in vain if state.target not in mistaken]
    cuts = _judged(cut_suspects(measured, [state for state in cut if state.is_requested]), judge_cuts)
    cuts += (untracked := _judged_untracked(measured, [state for state in cut if not state.is_requested]))
    cuts += _judged(cut_suspects(measured, [state for state in vain if not state.receives]), judge_cuts)
    missing += [state for state in vain if state.receives] + [each.suspect.state for each in untracked]
    arriving = [state for state in _with(states, "connected", "not_measured") if state.receives]
    zeros = _judged_zeros(measured, _with(states, "zero"))
    # The gradient of a penalty shrinks with the weights, until it vanishes: nothing else pulls at them.
    fading = _with(states, "vanishing")
    penalised = [state for state in fading if is_penalty_alone(measured.topology, state.variable, state.target)]
    arriving += penalised
    fading = [state for state in fading if state not in penalised]
    connected = _judged_connected(measured, arriving, {each.culprit for each in (*cuts, *zeros)})
    return [
        *cuts,
        *_judged_given(measured, given),
        *_judged((without_op(measured, state) for state in missing), _by(precedence.MISSING)),
        *_judged(_ends(measured, states), _by(precedence.UNUSED)),
        *zeros,
        *_excused_if_skipped(
            measured,
            _judged(birth_suspects(measured, _with(states, "nan", "inf"), zero=False), _by(precedence.NOT_FINITE)),
        ),
        *_judged((without_op(measured, state) for state in fading), _by(precedence.VANISHING)),
        *_judged((without_op(measured, state) for state in _huge_alone(measured, states)), _by(precedence.EXPLODING)),
        *_judged((without_op(measured, state) for state in _with(states, "frozen")), _by(precedence.FROZEN)),
        *_judged((without_op(measured, state) for state in _with(states, "integer")), _by(precedence.INTEGER)),
        *connected,
    ]


def _judged_zeros(measured: Measured, states: list[State]) -> list[Judged]:
    """What makes gradients zero. If nothing changes there, wherever the input is moved, while an op that passes no
    gradient reacts, the loss depends on the variable through the latter, and the zero is beside the point."""
    judged = _judged(birth_suspects(measured, states, zero=True), judge_zeros)
    flat = [each.suspect.state for each in judged if _reacts(measured, (each.culprit, *each.others)) is False]
    cuts = [each for each in covered_suspects(measured, flat) if _reacts(measured, [each.culprit])]
    elsewhere = _judged(cuts, judge_cuts)
    known = {each.suspect.state.variable for each in elsewhere}
    return [*elsewhere, *(each for each in judged if each.suspect.state.variable not in known)]


def _reacts(measured: Measured, ops: Iterable[int]) -> bool | None:
    """Whether one of these ops reacts when its input is moved; `None` if that was not tried with all of them."""
    found = [measured.reactions.get(each) for each in ops]
    if any(each is not None and each.reacts for each in found):
        return True
    return None if None in found else False


def _judged_untracked(measured: Measured, states: Sequence[State]) -> list[Judged]:
    """For plain variables of layers, which nobody trains and which something cuts off besides: what does it. As a
    warning, since a fixed threshold looks the same."""
    plain = [state for state in states if untracked_variable.is_plain_of_a_layer(without_op(measured, state))]
    judged = _judged(cut_suspects(measured, plain), judge_cuts)
    return [
        replace(each, verdict=replace(each.verdict, severity="warning"))
        for each in judged
        if each.verdict.severity == "error"
    ]


def _judged_given(measured: Measured, given: Sequence[State]) -> list[Judged]:
    """For gradients that were passed to the recorder: their kind, without an op."""
    return [
        judged
        for statuses, rules in precedence.GIVEN.items()
        for judged in _judged((without_op(measured, state) for state in _with(given, *statuses)), _by(rules))
    ]


def _judged_connected(measured: Measured, states: list[State], accused: set[int]) -> list[Judged]:
    """`accused` are the ops that are reported to cut off other variables: a term that they also cut off adds nothing
    new."""
    topology = measured.topology
    penalised = [state for state in states if is_penalty_alone(topology, state.variable, state.target)]
    covered = _judged(covered_suspects(measured, penalised), judge_cuts)
    covered += _judged_without_penalty(measured, [state for state in states if state not in penalised])
    known = {each.suspect.state.variable for each in covered}
    apart = [state for state in penalised if state.variable not in known]
    covered += _judged(suspects_of_terms(measured, apart), _judge_terms)
    known.update(each.suspect.state.variable for each in covered)
    rest = [state for state in states if state.variable not in known]
    told = _judged((without_op(measured, state) for state in rest), _by(precedence.CONNECTED))
    loud = {each.suspect.state.variable for each in told if each.verdict.severity != "info"}
    parts = _judged(suspects_of_parts(measured, [state for state in rest if state.variable not in loud]), _judge_parts)
    in_part = {each.suspect.state.variable for each in parts}
    told = [each for each in told if each.suspect.state.variable not in in_part]
    known.update(in_part, (each.suspect.state.variable for each in told))
    quiet = [state for state in rest if state.variable not in known]
    # A choice or a sample often takes no part in training on purpose. A warning, as other terms train the variable.
    beside = _judged(suspects_beside_others(measured, quiet), _only(_OF_VALUES, "warning"))
    known.update(each.suspect.state.variable for each in beside)
    quiet = [state for state in quiet if state.variable not in known]
    # Only information where all of the data comes through one: it may have been made on purpose.
    chosen = _judged(suspects_beside_others(measured, quiet, alone=True), _only(_OF_CHOICES, "info"))
    known.update(each.suspect.state.variable for each in chosen)
    quiet = [state for state in quiet if state.variable not in known]
    silent = _judged(suspects_of_terms(measured, quiet), _judge_terms)
    return [
        *covered,
        *told,
        *parts,
        *beside,
        *chosen,
        *_as_information(each for each in silent if each.culprit not in accused),
    ]


def _judged_without_penalty(measured: Measured, states: Iterable[State]) -> list[Judged]:
    """What makes a variable's gradient zero, except for that of a penalty on the variable."""
    topology = measured.topology
    silent = [
        replace(state, status="zero", gradient=_NOTHING, penalised=True)
        for state in states
        if is_penalty_alone(topology, state.variable, state.target, measured.zero_ops(state.target)[1])
    ]
    return _judged((each for each in birth_suspects(measured, silent, zero=True) if each.op.data), judge_zeros)


_NOTHING = GradientReport(norm=0.0, max_abs=0.0, mean_abs=0.0, zero_fraction=1.0, nan_count=0, inf_count=0)


def _judge_parts(suspects: Iterable[Suspect]) -> tuple[Suspect, Verdict] | None:
    """A part that was stopped on purpose is not reported. What cuts a part off is a warning, because the others learn.
    A part that the loss does not use may be another loss's: that is information."""
    listed = [suspect for suspect in suspects if suspect.op.type not in STOPS]
    cuts = [each for each in listed if is_cut(each)]
    found = judge_cuts(cuts) or judge([each for each in listed if not is_cut(each)], precedence.PART)
    if found is None:
        return None
    suspect, verdict = found
    if verdict.severity == "error":
        verdict = replace(verdict, severity="info" if only_decides(suspect) else "warning")
    same = cuts if is_cut(suspect) else [each for each in listed if each.culprit == suspect.culprit]
    return joined(suspect, same), verdict


def _judge_terms(suspects: Iterable[Suspect]) -> tuple[Suspect, Verdict] | None:
    """A gradient that was stopped on purpose is not reported."""
    found = judge_cuts(_with_nearest_stop(suspects))
    return None if found is None or found[1].cause in ("stop_gradient_misuse", "custom_gradient_wrong") else found


_OF_VALUES = ("nondiff_rounding", "integer_dtype", "python_escape")
_OF_CHOICES = ("nondiff_index", "nondiff_sampling", "nondiff_comparison")


def _only(causes: Collection[str], severity: Severity) -> Judge:
    """Cuts of these causes alone, and how severe they are."""

    def judge_some(suspects: Iterable[Suspect]) -> tuple[Suspect, Verdict] | None:
        found = judge_cuts(suspects)
        if found is None or found[1].cause not in causes or (found[1].severity == "info" and severity != "info"):
            return None
        return found[0], replace(found[1], severity=severity)

    return judge_some


def _with_nearest_stop(suspects: Iterable[Suspect]) -> list[Suspect]:
    """The suspects for one variable without the stops that cannot decide: the verdict on a stop does not depend on
    which one it is, and the nearest to the loss is chosen. Each batch normalisation has one."""
    kept: list[Suspect] = []
    nearest: dict[bool, tuple[int, int, Suspect]] = {}
    for suspect in suspects:
        if suspect.op.type not in STOPS:
            kept.append(suspect)
            continue
        place = suspect.topology.influence(suspect.target).hops[suspect.culprit], suspect.culprit, suspect
        known = nearest.get(suspect.op.backward)
        if known is None or place[:2] < known[:2]:
            nearest[suspect.op.backward] = place
    return kept + [suspect for *_, suspect in nearest.values()]


def _as_in_turn(judged: Judged) -> Judged:
    waits = waits_its_turn(judged.suspect, judged.verdict)
    return replace(judged, verdict=replace(judged.verdict, severity="info")) if waits else judged


def _as_information(judged: Iterable[Judged]) -> list[Judged]:
    return [replace(each, verdict=replace(each.verdict, severity="info")) for each in judged]


def _by(rules: tuple[Rule, ...]) -> Judge:
    return lambda suspects: judge(suspects, rules)


def _with(states: Sequence[State], *statuses: str) -> list[State]:
    return [state for state in states if state.status in statuses]


def _huge_alone(measured: Measured, states: Sequence[State]) -> list[State]:
    """Variables with a huge gradient of a finite loss; if the loss is not finite, that is reported instead. If the loss
    may be scaled by hand, the true size of the gradient is not known."""
    if measured.topology.trace.unscaled:
        return []
    return [state for state in _with(states, "exploding") if measured.loss_is_finite(state.target)]


def _has_size(state: State) -> bool:
    """Whether its problem is the size of its gradient."""
    return state.status in ("zero", "vanishing", "exploding", "connected", "not_measured")


def without_op(measured: Measured, state: State) -> Suspect:
    """A suspect without an op."""
    return Suspect(measured, state, -1, -1)


def _ends(measured: Measured, states: Sequence[State]) -> Iterable[Suspect]:
    """Unused variables for which a gradient was requested, with the op where the path of each ends."""
    for state in _with(states, "unused"):
        if state.is_requested:
            yield Suspect(measured, state, _end_of(measured.topology, state.variable), -1)


def _is_storage(topology: Topology, state: State) -> bool:
    """Whether the step created the variable only to store computed values in it, not to train it."""
    written = state.variable in topology.written
    return topology.trace.variables[state.variable].made and written and not state.is_requested


def _end_of(topology: Topology, variable: int) -> int:
    """The op where the path of an unused variable ends; for a tensor, the op that computes it."""
    computed = topology.trace.variables[variable].computed and topology.readers[variable]
    return topology.readers[variable][0] if computed else topology.dead_end(variable)


def _judged(suspects: Iterable[Suspect], judge: Judge) -> list[Judged]:
    by_variable: dict[int, list[Suspect]] = {}
    for suspect in suspects:
        by_variable.setdefault(suspect.state.variable, []).append(suspect)
    found = []
    for listed in by_variable.values():
        if (answer := judge(listed)) is not None:
            suspect, verdict = answer
            culprit = _culprit_of(suspect, verdict)
            others = tuple(each.culprit for each in listed if each is not suspect)
            found.append(Judged(suspect, verdict, culprit, others))
    return found


def _culprit_of(suspect: Suspect, verdict: Verdict) -> int:
    if verdict.culprit == NO_OP:
        return -1
    return verdict.culprit if verdict.culprit >= 0 else suspect.culprit


def _excused_if_skipped(measured: Measured, judged: Iterable[Judged]) -> list[Judged]:
    """The same as information if the loss is finite and the optimizer changed nothing: loss scaling tries scales that
    are too large, and skips those steps. Moving averages still change in them."""
    trace = measured.topology.trace
    targets, trained = trace.targets, [variable.trainable for variable in trace.variables]
    # A step that makes weights NaN was not skipped: for elements that are not finite, no change is known.
    changed = [UPDATE_NORM, NONFINITE_AFTER]
    moved = measured.variables is not None and bool((measured.variables[trained][:, changed] > 0).any())
    return [
        replace(each, verdict=replace(each.verdict, severity="info"))
        if not moved and targets[each.suspect.target].scaled and measured.loss_is_finite(each.suspect.target)
        else each
        for each in judged
    ]
