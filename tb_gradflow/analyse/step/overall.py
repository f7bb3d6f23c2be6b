"""What a run suffers from, if anything, and what was ruled out: is it the gradient, or the size of the steps?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tb_gradflow.analyse.step.measured import UPDATE_NORM, WEIGHT_NORM, Measured
from tb_gradflow.analyse.step.movement import movement_of
from tb_gradflow.analyse.step.status import State
from tb_gradflow.record.experiments import SPACINGS
from tb_gradflow.record.report import Finding, OverallVerdict, VerdictKind
from tb_gradflow.record.schema import LineSearch

_LEAST_RISE = 0.1
"""A step is too long if it raises the loss of its own batch by a larger part, and a shorter one lowers it."""

_MOST_FALL = 1e-4
"""A step is too short if it lowers the loss of its own batch by a smaller part, and one a hundred times as long lowers
it further. A rate of 1e-5, common for fine-tuning, lowers it by more."""

_SHORTER = {0.1: "a tenth", 0.01: "a hundredth", 0.001: "a thousandth"}

_OF_CAUSES: dict[str, VerdictKind] = {
    "labels_broadcast": "labels",
    "probabilities_as_logits": "labels",
    "nonfinite_input": "inputs",
    "gradient_not_applied": "updates",
    "nonfinite_update": "updates",
    "loss_not_scaled": "updates",
    "term_dominates": "terms",
    "terms_in_conflict": "terms",
    "term_teaches_nothing": "terms",
}


def overall_verdict(
    measured: Measured, states: Sequence[State], findings: Sequence[Finding], summary: str
) -> OverallVerdict:
    """`states` are those of the listed variables; `summary` is the step in one sentence."""
    loud = [each for each in findings if each.severity != "info"]
    search = measured.line_search
    if loud:
        return OverallVerdict(_OF_CAUSES.get(loud[0].cause, "gradient"), summary, ())
    ruled_out = tuple(_ruled_out(measured, states))
    if search is not None and (said := _of_rate(measured, search)):
        return OverallVerdict("rate", said, ruled_out)
    targets = {state.target for state in states if state.target >= 0}
    if targets and all(measured.is_small(target) for target in targets):
        return OverallVerdict("learned", summary, ruled_out)
    fine = () if search is None else (_good_step(search),)
    return OverallVerdict("nothing_found", summary, (*ruled_out, *filter(None, fine)))


def _of_rate(measured: Measured, search: LineSearch) -> str:
    """That the steps are too long or too short; empty if neither is shown."""
    losses = dict(zip(search.factors, search.losses, strict=True))
    before, whole, hundred = search.before, *(losses.get(each, np.nan) for each in (1.0, 100.0))
    if not np.isfinite(before):
        return ""
    noise = 10 * abs(search.again - before) + SPACINGS * abs(before)
    shorter = [each for each in _SHORTER if losses.get(each, np.nan) < before - noise]
    if shorter and not whole <= before + _LEAST_RISE * abs(before):
        return (
            f"Not the gradient, but the step is too long: {_rate(measured)} raises the loss of the step's own batch "
            f"from {before:.3g} to {whole:.3g}, and {_SHORTER[shorter[0]]} of the step would lower it to "
            f"{losses[shorter[0]]:.3g}."
        )
    if before - _MOST_FALL * abs(before) < whole <= before and hundred < min(before - noise, whole):
        return (
            f"Not the gradient, but the step is too short: {_rate(measured)} lowers the loss of the step's own batch "
            f"by {before - whole:.2g}, from {before:.3g}; a step a hundred times as long would lower it by "
            f"{before - hundred:.2g}."
        )
    return ""


def _rate(measured: Measured) -> str:
    """The learning rate, if it is known and the same for all variables."""
    numbers = range(len(measured.topology.trace.variables))
    rates = {each.rate for number in numbers if (each := movement_of(measured, number)) is not None}
    [rate] = rates if len(rates) == 1 else [None]
    return "the learning rate" if rate is None else f"the learning rate, {rate:.3g},"


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


def _good_step(search: LineSearch) -> str:
    """That the length of the step is right, in numbers; empty if it does not lower the loss."""
    losses = dict(zip(search.factors, search.losses, strict=True))
    if not losses.get(1.0, np.nan) < search.before:
        return ""
    return (
        f"The learning rate: the step lowers the loss of its own batch from {search.before:.3g} to {losses[1.0]:.3g}; "
        f"a tenth of it, to {losses.get(0.1, np.nan):.3g}; ten times it, to {losses.get(10.0, np.nan):.3g}."
    )
