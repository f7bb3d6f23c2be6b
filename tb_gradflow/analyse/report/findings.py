"""From verdicts to findings: grouping, texts, order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tb_gradflow.analyse.causes.cancelling.shift_invariant_parameter import OPPOSED, takes_out
from tb_gradflow.analyse.causes.catalogue import CATALOGUE, fixes_of, text_of
from tb_gradflow.analyse.causes.precedence import CUT_PRECEDENCE
from tb_gradflow.analyse.causes.wrong_value.override_without_effect import ignored_override
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.dropped_layer import dropped_layer
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.report.also_cut import also_cut_by
from tb_gradflow.analyse.report.grown import grown
from tb_gradflow.analyse.report.moved import moved_anyway
from tb_gradflow.analyse.report.quoted import with_code_of
from tb_gradflow.analyse.report.trials import as_tried
from tb_gradflow.analyse.report.turns import in_turn
from tb_gradflow.analyse.report.verdicts import Judged, judged_of, without_op
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.status import State
from tb_gradflow.analyse.user_code.candidate import Candidate
from tb_gradflow.analyse.user_code.code import program_of
from tb_gradflow.analyse.user_code.definitions import Definition, compiling, creation_of_layer
from tb_gradflow.analyse.user_code.imports import as_imported
from tb_gradflow.analyse.words.forward_pass import examples_of, measured_values
from tb_gradflow.analyse.words.names import Group, layers_around
from tb_gradflow.record.expected import expected_by
from tb_gradflow.record.report import SEVERITIES, Alternative, Edit, Finding, OpReport, SourceReport
from tb_gradflow.record.schema import PYTHON, SNAPSHOT, Trace

# The remainder when gradients of about one cancel.
NOISE_BELOW = 1e-5

MOST_EDITS = 4
"""How many edits a finding offers at most."""


@dataclass(frozen=True, slots=True)
class Found:
    """The conclusions about a step.

    Attributes:
        findings: Most severe first.
        inexact: The suspects whose op is not exactly known.
        noise: Variables whose gradient was found to be rounding noise around zero.
    """

    findings: tuple[Finding, ...]
    inexact: tuple[Suspect, ...]
    noise: frozenset[int]


def findings_of(measured: Measured, states: Sequence[State], expected: Sequence[str]) -> Found:
    """The findings, and the facts that were found with them."""
    trace = measured.topology.trace
    is_expected = expected_by(tuple(expected))
    meant = [state for state in states if is_expected(trace.variables[state.variable].name)]
    spoken = set(map(id, meant))
    judged = judged_of(measured, [state for state in states if id(state) not in spoken])
    excused = [state for state in meant if state.status not in ("connected", "frozen")]
    if excused:
        verdict = Verdict("expected", "info")
        judged += [Judged(without_op(measured, state), verdict, -1) for state in excused]
    is_held = all(each.verdict.cause in _HELD for each in judged)
    is_learning = any(state.status in _LEARNING for state in states)
    if judged and is_held and not is_learning and not measured.has_learned_before():
        judged = [_without_anything_learning(each) for each in judged]
    groups = _grouped(measured, judged)
    findings = [_finding(group) for group in groups]
    order = sorted(range(len(groups)), key=lambda place: _order(groups[place], findings[place]))
    return Found(
        findings=tuple(_apart(findings[place] for place in order)),
        inexact=tuple(each.suspect for each in judged if not each.suspect.exact and not _is_followed(each)),
        noise=frozenset(each.suspect.state.variable for each in judged if _is_noise(each)),
    )


def _apart(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, none with an edit that changes a line of another's: all can be applied to one file."""
    taken: list[Edit] = []
    for finding in findings:
        first = [] if finding.edit is None else [Alternative(finding.edit, finding.cost, finding.tried)]
        offered = [*first, *finding.alternatives]
        free = [each for each in offered if all(each.edit == other or not each.edit.overlaps(other) for other in taken)]
        if free:
            taken.append(free[0].edit)
        if free == offered:
            yield finding
        elif free:
            first_free, *rest = free
            yield replace(
                finding,
                edit=first_free.edit,
                cost=first_free.cost,
                tried=first_free.tried,
                alternatives=tuple(rest),
            )
        else:
            yield replace(finding, edit=None, cost="", tried=None, alternatives=())


_LEARNING = ("connected", "vanishing", "exploding")
_HELD = ("saturation_clip", "saturation_sigmoid", "saturation_softmax", "targets_out_of_reach")


def _without_anything_learning(judged: Judged) -> Judged:
    """A flat function before which some variables get no gradient is a warning, because other batches may reach its
    slope. If no variable at all learns from this batch or learned from one before, only for this reason, it is an
    error."""
    if judged.verdict.cause not in _HELD or judged.verdict.severity != "warning":
        return judged
    return replace(judged, verdict=replace(judged.verdict, severity="error"))


def _is_followed(judged: Judged) -> bool:
    """Whether values that are known to be zero lead to this op, into a part that was not recorded."""
    return judged.culprit != judged.suspect.culprit and judged.verdict.cause.startswith("zero_init")


def _is_noise(judged: Judged) -> bool:
    gradient = judged.suspect.state.gradient
    return CATALOGUE[judged.verdict.cause].leaves_noise and gradient is not None and gradient.max_abs < NOISE_BELOW


def _grouped(measured: Measured, judged: list[Judged]) -> list[Group]:
    """Variables with the same cause at the same op, or at ops made by the same line, are reported together; without an
    op, those of which the same is said."""
    trace = measured.topology.trace
    groups: dict[tuple[object, ...], list[Judged]] = {}
    for each in judged:
        source = line_of(measured.topology, each.verdict.cause, each.culprit, each.suspect.target)
        kind = trace.ops[each.culprit].type if each.culprit >= 0 else ""
        place: object = ("line", source, kind) if source is not None else ("op", each.culprit)
        if source is None and each.culprit < 0:
            place = each.verdict.text
        if CATALOGUE[each.verdict.cause].told_at_once:
            place = kind if each.verdict.cause == "zero_init_by_design" else _taker(each)
        groups.setdefault((each.verdict.cause, each.verdict.severity, place), []).append(each)
    return [_group(measured, listed) for listed in groups.values()]


def _taker(judged: Judged) -> str | None:
    """What cancels an offset without influence, as a kind of op, or the terms of a loss; None for all other causes."""
    if judged.verdict.cause != "shift_invariant_parameter" or judged.culprit < 0:
        return None
    if judged.verdict.text is OPPOSED:
        return "terms"
    taker = takes_out(judged.suspect, judged.culprit)
    return judged.suspect.type_of(taker) if taker >= 0 else judged.suspect.type_of(judged.culprit)


def _group(measured: Measured, judged: list[Judged]) -> Group:
    lead = _lead(measured, judged)
    others = tuple(dict.fromkeys(op for op in lead.others if op != lead.culprit)) if _is_cut(lead) else ()
    states = sorted((each.suspect.state for each in judged), key=lambda state: state.variable)
    culprits = dict(sorted((each.suspect.state.variable, each.culprit) for each in judged))
    return Group(
        lead.verdict, lead.suspect, tuple(states), lead.culprit, others, culprits, lead.verdict.cause in CUT_PRECEDENCE
    )


def _lead(measured: Measured, judged: list[Judged]) -> Judged:
    """The op to show: of the most frequent type, the one nearest to the loss."""
    ops = measured.topology.trace.ops
    kinds = [ops[each.culprit].type if each.culprit >= 0 else "" for each in judged]
    usual, _ = Counter(kinds).most_common(1)[0]
    usual_ones = [each for each, kind in zip(judged, kinds, strict=True) if kind == usual]
    return min(usual_ones, key=lambda each: _distance(measured, each.suspect.target, each.culprit))


def _is_cut(judged: Judged) -> bool:
    return judged.suspect.state.status in ("disconnected", "error")


def _distance(measured: Measured, target: int, op: int) -> int:
    if op < 0 or target < 0:
        return len(measured.topology.trace.ops)
    hops = measured.topology.influence(target).hops[op]
    return hops if hops >= 0 else len(measured.topology.trace.ops)


def _finding(group: Group) -> Finding:
    text, moves = in_turn(group, text_of(group)), moved_anyway(group)
    op = group.op
    fixes, not_tried = as_tried(group.trace, _different(fixes_of(group)))
    fix = fixes[0] if fixes else None
    advice = with_code_of(fix.edit if fix is not None else None, text.fix, CATALOGUE[group.verdict.cause].quotes)
    return Finding(
        cause=group.verdict.cause,
        severity=group.verdict.severity,
        variables=group.names,
        op=OpReport(op.name, op.type) if op is not None and op.type not in (PYTHON, SNAPSHOT) else None,
        source=_shown(group),
        message=text.message
        + measured_values(group)
        + grown(group)
        + moves.message
        + also_cut_by(group)
        + ignored_override(group),
        fix=as_imported(group, advice + moves.fix),
        target=group.suspect.target,
        culprit=group.culprit,
        path=path_of(group),
        edit=fix.edit if fix is not None else None,
        cost=fix.cost if fix is not None else "",
        tried=fix.tried if fix is not None else None,
        not_tried=not_tried,
        alternatives=tuple(fixes[1:]),
        examples=examples_of(group),
    )


def _shown(group: Group) -> SourceReport | None:
    """The user's line that a finding shows; of an op of a layer that Keras calls, the line that creates the layer; of
    one of a loss that Keras calls, the line that compiles the model."""
    trace, op = group.trace, group.culprit
    line = line_of(group.suspect.topology, group.verdict.cause, op, group.suspect.target)
    if line is not None:
        source = trace.sources[line]
        return SourceReport(source.file, source.line, source.code)
    return defined.source if group.op is not None and (defined := _made(trace, op)) is not None else None


def _made(trace: Trace, op: int) -> Definition | None:
    program = program_of(trace).passages
    if trace.ops[op].name.startswith("compile_loss/"):
        return compiling(program)
    around = (each for each in layers_around(trace, op) if each.type not in _MODELS)
    return next(filter(None, (creation_of_layer(program, trace, each.name) for each in around)), None)


_MODELS = "Sequential", "Functional", "Model"


def _different(found: Iterable[Candidate]) -> list[Candidate]:
    """The first few of them, each edit once."""
    kept: dict[Edit, Candidate] = {}
    for each in found:
        kept.setdefault(each.edit, each)
        if len(kept) == MOST_EDITS:
            break
    return list(kept.values())


def line_of(topology: Topology, cause: str, index: int, target: int) -> int | None:
    """The index of the user's line that a finding shows: the line of the op, or the line where a custom gradient is
    written, or where a layer is called whose result is dropped; without an op, if the tape is the cause, the line that
    requests the gradient. None if there is none."""
    trace = topology.trace
    if cause == "output_not_used" and (layer := dropped_layer(topology, index, target)) is not None:
        return layer.source
    own = [check.source for check in trace.gradient_checks if check.op == index and check.source is not None]
    if own and cause == "custom_gradient_wrong":
        return own[0]
    if index < 0 <= target and CATALOGUE[cause].shows_request:
        return trace.targets[target].source
    return trace.ops[index].source if index >= 0 else None


def path_of(group: Group) -> tuple[int, ...]:
    """From the first op that reads the variable, through the culprit, to the loss, as far as the path goes."""
    topology, target = group.suspect.topology, group.suspect.target
    variable = group.suspect.state.variable
    readers = topology.readers[variable]
    if target < 0:
        return ()
    influence = topology.influence(target)
    if group.culprit < 0:
        ways = [way for reader in readers if (way := influence.from_op(reader))]
        return min(ways, key=len, default=())
    head = topology.way_between(readers, group.culprit, gradient_only=False)
    tail = influence.from_op(group.culprit)
    return (*head, *tail[1:]) if head else tail or (group.culprit,)


def _order(group: Group, finding: Finding) -> tuple[int, int, bool, int, int, str]:
    distance = _distance(group.suspect.measured, finding.target, group.culprit)
    is_finite = not any(state.status in ("nan", "inf") for state in group.states)
    severity = SEVERITIES.index(finding.severity)
    return severity, -len(finding.variables), is_finite, distance, finding.culprit, finding.cause
