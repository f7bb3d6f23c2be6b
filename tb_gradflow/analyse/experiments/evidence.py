"""What experiments with the step say about a finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tb_gradflow.analyse.experiments.interventions import of_interventions
from tb_gradflow.analyse.experiments.slopes import of_slopes
from tb_gradflow.analyse.experiments.wording import apart, loss_called
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.step.status import State
from tb_gradflow.analyse.words.names import called
from tb_gradflow.record.report import Evidence, Finding
from tb_gradflow.record.schema import Influence, Reaction, Trace

_WITHOUT = ("disconnected", "unused", "zero", "vanishing")


def with_evidence(measured: Measured, states: Sequence[State], findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The same findings, with what happened when their variables were moved, as far as these get no gradient, or next
    to none, and what changed their gradients."""
    listed = tuple(findings)
    known = (measured.influences, measured.reactions, measured.not_moved, measured.interventions, measured.slopes)
    if not any(known):
        return listed
    variables = measured.topology.trace.variables
    without = {variables[each.variable].name: each for each in states if each.status in _WITHOUT}
    # One of an earlier step has its own.
    return tuple(
        each if each.evidence else replace(each, evidence=tuple(_of(measured, each, listed, without)))
        for each in listed
    )


def _of(
    measured: Measured, finding: Finding, findings: Sequence[Finding], without: Mapping[str, State]
) -> Iterator[Evidence]:
    trace = measured.topology.trace
    names = [name for name in finding.variables if name in without]
    targets = [finding.target] if finding.target >= 0 else range(len(trace.targets))
    found = [
        (known, name, target)
        for name in names
        for target in targets
        if (known := measured.influences.get((trace.targets[target].name, name))) is not None
    ]
    # One that the loss depends on, and one that it does not.
    told = {known.reacts: (known, name, target) for known, name, target in reversed(found)}
    for known, name, target in sorted(told.values(), key=lambda each: not each[0].reacts):
        is_scalar = not trace.variables[without[name].variable].shape
        moving = f"`{name}`" if is_scalar else f"each element of `{name}`"
        gradient = without[name].gradient
        size = None if gradient is None else gradient.max_abs
        loss = loss_called(trace, target)
        is_asked = any(
            (each.target, each.variable) == (target, without[name].variable) and each.outcome != "not_asked"
            for each in trace.variable_gradients
        )
        text = f"Moving {moving} {_outcome(known, loss, 'both' if is_scalar else 'four')}"
        if known.reacts:
            text += f"; {_answer(size) if is_asked else 'no gradient is requested for it'}"
        also = "" if known.reacts else _also_stopped(finding, [each for each in findings if _stops(each, without)])
        text += f": on the way to it, `{also}` stops it too." if also else "."
        change = known.after - known.before if known.reacts else 0.0
        yield Evidence("influence", name, loss, change, size, text)
    if (reaction := measured.reactions.get(finding.culprit)) is not None and names:
        yield _of_op(trace, reaction)
    yield from of_slopes(trace, measured.slopes, finding)
    yield from of_interventions(trace, measured.interventions, finding)
    if names and not found and measured.not_moved:
        loss = loss_called(trace, targets[0])
        why = f"because the step cannot run again: {measured.not_moved}."
        text = f"Whether the {loss} depends on `{names[0]}` was not tried, {why}"
        yield Evidence("influence", names[0], loss, None, None, text)


def _outcome(known: Influence, loss: str, ways: str) -> str:
    before, after = apart(known.before, known.after)
    if not known.reacts:
        return f"by up to {known.amount:.3g}, in {ways} directions, does not change the {loss}, {before}"
    still = f", while {known.still:.3g} changes nothing" if known.still else ""
    return f"by {known.amount:.3g} changes the {loss} from {before} to {after}{still}"


def _of_op(trace: Trace, known: Reaction) -> Evidence:
    """What an op did when its input was moved."""
    name = called(trace, known.op)
    if not known.reacts:
        text = f"Moving the input of {name} by up to {known.amount:.3g} does not change its output."
    else:
        share = "" if known.changed > 0.995 else f"{100 * known.changed:.2g} % of "
        still = f", while {known.still:.3g} changes nothing" if known.still else ""
        text = f"Moving the input of {name} by {known.amount:.3g} changes {share}its output{still}."
    return Evidence("reaction", trace.ops[known.op].name, "output", known.change, None, text)


def _answer(gradient: float | None) -> str:
    return f"its gradient is {'None' if gradient is None else f'at most {gradient:.2g}' if gradient else 'zero'}"


def _stops(finding: Finding, without: Mapping[str, State]) -> bool:
    """Whether it is about variables without a gradient, not about one that arrives and is misleading."""
    return not without.keys().isdisjoint(finding.variables)


def _also_stopped(finding: Finding, findings: Sequence[Finding]) -> str:
    """Another cause, whose op lies between that of this one and the loss; empty if there is none."""
    if finding.culprit not in finding.path:
        return ""
    behind = finding.path[finding.path.index(finding.culprit) + 1 :]
    others = [each for each in findings if each.cause != finding.cause and each.severity != "info"]
    return next((each.cause for each in others if each.culprit in behind), "")
