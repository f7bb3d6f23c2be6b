"""What a run suffers from, if anything, and what was ruled out: is it the gradient, the length of the steps, or what
the model is to learn?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tb_gradflow.analyse.over_time.updates import LongStep
from tb_gradflow.analyse.step.learnable import (
    fit_in,
    has_another_gradient,
    has_not_fallen,
    is_not_the_reason,
    same_targets,
    says_nothing,
    steps_too_short,
    targets_in,
    targets_too_large,
    teaches_nothing,
)
from tb_gradflow.analyse.step.measured import UPDATE_NORM, WEIGHT_NORM, Measured
from tb_gradflow.analyse.step.status import State
from tb_gradflow.record.report import Finding, OverallVerdict, VerdictKind
from tb_gradflow.record.schema import LineSearch

_MOST_FALL, _LEAST_GAIN = 1e-4, 0.01
"""A step is too short if it lowers the loss of its own batch by a smaller part than the first, and a far longer one
would lower it by a larger part than the second. A rate of 1e-5, common for fine-tuning, lowers it by more than the
first; where a training has converged, no step lowers it by the second."""

_GRADUAL = {100: (30, 300), 10: (5, 20)}
"""A loss falls gradually if a hundred times the step lowers it about a hundred times as much, or ten times it about ten
times."""

_LARGE_TARGETS = 100.0
"""Outputs begin at about one."""

_LARGE_INPUTS = 300.0
"""More than the values of pixels, which many programs do not scale and still learn from."""

_COME_DOWN = 0.5
"""A loss of which a smaller part is left than of the one after a step that was too long is falling again."""

_FALLEN = 0.2
"""By which part of it a loss has fallen since another step if that says nothing of now: batches differ."""

_PARTS = {0.1: "a tenth", 0.01: "a hundredth", 0.001: "a thousandth"}

_OF_CAUSES: dict[str, VerdictKind] = {
    "labels_broadcast": "labels",
    "probabilities_as_logits": "labels",
    "not_a_distribution": "labels",
    "targets_out_of_reach": "labels",
    "predictions_dropped": "labels",
    "nonfinite_input": "inputs",
    "fractions_as_indices": "inputs",
    "gradient_not_applied": "updates",
    "nonfinite_update": "updates",
    "loss_not_scaled": "updates",
    "gradient_clipped": "updates",
    "steps_skipped": "updates",
    "uneven_updates": "updates",
    "term_dominates": "terms",
    "terms_in_conflict": "terms",
    "term_teaches_nothing": "terms",
}

_OF_VALUES = ("zero", "vanishing", "nan", "inf", "exploding")
"""What weights that have grown too large may give a variable that has a gradient otherwise."""


_OF_LARGE_WEIGHTS = frozenset(
    {
        "dead_relu", "dead_units", "saturation_sigmoid", "saturation_softmax", "local_saturation", "vanishing_depth",
        "exploding_recurrence", "exp_overflow", "nonfinite_weights",
    }
)  # fmt: skip
"""What weights that are too large lead to; elsewhere, an op that is not finite everywhere has its own fix."""


def overall_verdict(
    measured: Measured, states: Sequence[State], findings: Sequence[Finding], summary: str
) -> OverallVerdict:
    """`states` are those of the listed variables; `summary` is the step in one sentence."""
    loud = [each for each in findings if each.severity != "info"]
    if loud:
        if (earlier := _too_long_before(measured, states, loud)) is not None:
            step, _, raised = earlier
            return OverallVerdict("rate", f"{summary} Before that, in step {step}, {raised}", ())
        return OverallVerdict(_OF_CAUSES.get(loud[0].cause, "gradient"), summary, ())
    ruled_out = tuple(_ruled_out(measured, states))
    when, search = _that_holds(measured)
    if search is not None and search.better is not None:
        raises = f"{when}{_rate(search)} raises {_too_long(search, search.better, 'lower')}"
        return OverallVerdict("rate", f"Not the gradient, but the step is too long: {raises}", ruled_out)
    if (long := measured.long_step) is not None and _is_as_high(measured, long):
        raised = f"in step {long.step}, {_larger_than_weights(long)}{_of_units(measured)}"
        return OverallVerdict("rate", f"Not the gradient, but the steps are too long: {raised}", ruled_out)
    targets = {state.target for state in states if state.target >= 0}
    if targets and all(measured.is_small(target) for target in targets):
        return OverallVerdict("learned", summary, ruled_out)
    fit = fit_in(measured)
    if fit is not None and (said := targets_too_large(fit)):
        return OverallVerdict("labels", f"Not the gradient, but the size of the targets: {said}", ruled_out)
    if search is not None and (said := _too_short(search)):
        said = f"{when}{said}{_of_large_targets(measured, search.target)}"
        return OverallVerdict("rate", f"Not the gradient, but the step is too short: {said}", ruled_out)
    if measured.rest is not None and not measured.rest.moved:
        return OverallVerdict("updates", summary, ruled_out)
    if fit is not None and (said := steps_too_short(fit)):
        return OverallVerdict("rate", f"Not the gradient, but the steps are too short: {said}", ruled_out)
    if fit is not None and (said := teaches_nothing(fit)):
        return OverallVerdict("batch", f"Not the gradient, and not the learning rate: {said}", ruled_out)
    if search is not None and search.after(1.0) < search.before:
        ruled_out += (_good_step(search),)
    if fit is not None and (said := is_not_the_reason(fit)):
        ruled_out += (said,)
    said = same_targets(measured) or says_nothing(measured)
    if not said and fit is not None:
        said = has_another_gradient(measured, fit) or has_not_fallen(fit)
    summary = f"{summary} {said}".rstrip()
    return OverallVerdict("nothing_found", summary, ruled_out)


def after_a_long_step(
    measured: Measured, states: Sequence[State], findings: tuple[Finding, ...]
) -> tuple[Finding, ...]:
    """The same, where a step that was too long came before gradients lost their value: an edit that was not run treats
    what follows from it, such as units that are inactive since then."""
    loud = [each for each in findings if each.severity != "info"]
    if (earlier := _too_long_before(measured, states, loud)) is None:
        return findings
    step, rate, _ = earlier
    advice = f"Lower {rate}: in step {step}, before this began, the step was too long.{_of_units(measured)} "
    variables = {variable.name: number for number, variable in enumerate(measured.topology.trace.variables)}
    had_one = {name for name, number in variables.items() if measured.largest_before(number)[0] > 0}
    return tuple(
        replace(each, fix=advice + _continued(each.fix), edit=None, cost="", alternatives=())
        if each.tried is None
        and each.severity != "info"
        and had_one >= {*each.variables}
        and not each.fix.startswith(advice.partition(" was ")[0])  # as it was said of an earlier step
        else each
        for each in findings
    )


_SAME_ADVICE = "Lower the learning rate; "


def _continued(fix: str) -> str:
    if fix.startswith(_SAME_ADVICE):
        rest = fix.removeprefix(_SAME_ADVICE)
        return rest[:1].upper() + rest[1:]
    return f"Otherwise: {fix[:1].lower()}{fix[1:]}"


def _too_long_before(
    measured: Measured, states: Sequence[State], loud: Sequence[Finding]
) -> tuple[int, str, str] | None:
    """The first step that was too long, if it was an earlier one and may explain all findings, its learning rate, and
    what it did."""
    if not loud or not _is_of_values(measured, states, loud):
        return None
    if measured.too_long is not None:
        step, first = measured.too_long
        if step >= measured.step or first.better is None:
            return None
        rate = _rate(first)
        return step, rate.rstrip(","), f"{rate} raised {_too_long(first, first.better, 'have lowered')}"
    if all(each.cause in _OF_LARGE_WEIGHTS for each in loud) and (long := measured.long_step) is not None:
        return long.step, "the learning rate", _larger_than_weights(long)
    return None


def _larger_than_weights(long: LongStep) -> str:
    after = f"rose from {long.before:.3g} to {long.after:.3g}" if np.isfinite(long.after) else "was not finite any more"
    return f"the step was larger than the weights that it changed, and the loss {after}."


def _is_as_high(measured: Measured, long: LongStep) -> bool:
    """Whether the loss has not come down again since a step."""
    now = [measured.usual_loss(each.name, measured.step) for each in measured.topology.trace.targets]
    return len(now) == 1 and not now[0] < _COME_DOWN * long.after


def _of_units(measured: Measured) -> str:
    """That the batch, or its targets, are large; empty if they are not."""
    largest = measured.largest_input
    inputs = f" The batch reaches {largest:.3g}: rather than the rate, scale inputs to about 1."
    return _of_large_targets(measured, 0) or (inputs if largest > _LARGE_INPUTS else "")


def _that_holds(measured: Measured) -> tuple[str, LineSearch | None]:
    """The line search of this step, or of another one, and which, if the loss has not fallen since then; `None` if
    there is none."""
    if measured.line_search is None:
        return "", None
    step, search = measured.line_search
    if step == measured.step:
        return "", search
    if search.better is None:
        target = measured.topology.trace.targets[search.target].name
        then, now = (measured.usual_loss(target, each) for each in (step, measured.step))
    else:
        # A step that was too long has raised the loss: what is usual around it says nothing.
        then, now = search.before, measured.losses[search.target] if search.target < len(measured.losses) else np.nan
    holds = now > then - _FALLEN * abs(then)
    return f"in step {step}, ", search if holds else None


def _is_of_values(measured: Measured, states: Sequence[State], loud: Sequence[Finding]) -> bool:
    """Whether all findings are about gradients that are there, and have lost their value."""
    variables = measured.topology.trace.variables
    status = {variables[each.variable].name: each.status for each in states}
    return all(each.variables and all(status.get(name) in _OF_VALUES for name in each.variables) for each in loud)


def _too_long(search: LineSearch, part: float, lower: str) -> str:
    whole = search.after(1.0)
    return (
        f"the loss of the step's own batch from {search.before:.3g} "
        f"to {f'{whole:.3g}' if np.isfinite(whole) else 'a value that is not finite'}, "
        f"and {_PARTS[part]} of the step would {lower} it to {search.after(part):.3g}."
    )


def _too_short(search: LineSearch) -> str:
    """That the step is too short; empty if it is not."""
    before, fall = search.before, search.before - search.after(1.0)
    best = min(search.factors, key=lambda each: np.nan_to_num(search.after(each), nan=np.inf))
    gain = before - search.after(best)
    if best < 100 or gain <= _LEAST_GAIN * abs(before) + search.noise:
        return ""
    # Behind a rounding, the loss stays as it is for a while and then jumps, and the steps add up to that.
    gains = {each: before - search.after(each) for each in search.factors if before - search.after(each) > search.noise}
    is_gradual = any(
        low < gains.get(times * each, 0.0) / gains[each] < high
        for times, (low, high) in _GRADUAL.items()
        for each in gains
    )
    if not is_gradual or not -search.noise <= fall < _MOST_FALL * abs(before):
        return ""
    does = f"leaves the loss of the step's own batch at {before:.3g}"
    if fall > search.noise:
        does = f"lowers the loss of the step's own batch by {fall:.2g}, from {before:.3g}"
    longer = f"a step {best:,.0f} times as long would lower it to {before - gain:.3g}"
    return f"{_rate(search)} {does}; {longer}."


def _of_large_targets(measured: Measured, target: int) -> str:
    """That the outputs have far to go; empty if they have not."""
    targets = targets_in(measured, target)
    if targets is None or max(map(abs, targets)) < _LARGE_TARGETS:
        return ""
    return (
        f" The targets go from {targets[0]:.3g} to {targets[1]:.3g}, where outputs begin at about 1: rather than the "
        "rate, change their unit, `(y - y.mean()) / y.std()` with the numbers of the training data."
    )


def _good_step(search: LineSearch) -> str:
    return (
        f"The learning rate: the step lowers the loss of its own batch from {search.before:.3g} "
        f"to {search.after(1.0):.3g}; a tenth of it, to {search.after(0.1):.3g}; "
        f"ten times it, {f'to {ten:.3g}' if np.isfinite(ten := search.after(10.0)) else 'no finite one'}."
    )


def _rate(search: LineSearch) -> str:
    return "the learning rate" if search.rate is None else f"the learning rate, {search.rate:.3g},"


def _ruled_out(measured: Measured, states: Sequence[State]) -> Iterator[str]:
    trained = [each for each in states if measured.topology.trace.variables[each.variable].trainable]
    reached = [each for each in trained if each.status == "connected"]
    if trained and len(reached) == len(trained):
        yield f"The gradient reaches all {len(trained)} trainable variables, and is finite."
    # Those of a layer that add something begin as zeros.
    factors = [each.variable for each in reached if len(measured.topology.trace.variables[each.variable].shape) > 1]
    if measured.variables is not None and factors:
        rows = measured.variables[factors]
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = rows[:, UPDATE_NORM] / rows[:, WEIGHT_NORM]
        known = shares[np.isfinite(shares) & (shares > 0)]
        if known.size:
            yield f"The step changes a weight by {np.median(known):.1g} of its size, in the median of the matrices."
