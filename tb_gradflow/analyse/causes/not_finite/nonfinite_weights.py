"""Weights were NaN or infinite before the step."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.over_time.onset import Onset
from tb_gradflow.analyse.step.broken_midstep import broken_meanwhile, is_broken_before
from tb_gradflow.analyse.step.measured import NONFINITE_AFTER, NONFINITE_BEFORE
from tb_gradflow.analyse.words.fields import fields
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.analyse.words.phrases import counted


def rule(suspect: Suspect) -> Verdict | None:
    """Weights that were NaN or infinite before the step: nothing in the step is the cause."""
    bad = suspect.measured.nonfinite_weights(suspect.target)
    own = suspect.state.variable in suspect.measured.nonfinite_before
    if own or (bad and suspect.state.status in ("nan", "inf")):
        return Verdict("nonfinite_weights", "error", NO_OP)
    return None


def weights_broken_meanwhile(suspect: Suspect) -> Verdict | None:
    """Weights that the step itself broke, with the update for another loss, before this one was computed from them."""
    measured, state = suspect.measured, suspect.state
    if state.status not in ("nan", "inf") or is_broken_before(measured, state.variable, state.target):
        return None
    return Verdict("nonfinite_weights", "info", NO_OP) if broken_meanwhile(measured, state.target) else None


def message_and_fix(group: Group) -> Text:
    measured = group.suspect.measured
    meanwhile = broken_meanwhile(measured, group.suspect.target)
    if meanwhile and not measured.nonfinite_weights(group.suspect.target):
        return Text(
            f"{fields(group)['plight']} because the loss is computed from weights that are no longer finite: an "
            f"earlier update in this step, for another loss, broke {counted(group, meanwhile, NONFINITE_AFTER)}.",
            "Fix what breaks the gradient of those weights; there is nothing else to fix here.",
        )
    bad = measured.nonfinite_weights(group.suspect.target) or tuple(sorted(measured.nonfinite_before))
    return Text(
        f"The weights were not finite before this step started: {counted(group, bad, NONFINITE_BEFORE)}. Everything "
        f"computed from them is not finite either; nothing in this step is the cause.{_since(measured.onset)}",
        _from_there(measured.onset),
    )


def _since(onset: Onset | None) -> str:
    if onset is None:
        return ""
    if onset.recorded:
        return f" It started in step {onset.last}."
    if onset.last >= 0:
        return f" It started between the recorded steps {onset.last} and {onset.first}."
    return f" It started before the first recorded step, {onset.first}."


def _from_there(onset: Onset | None) -> str:
    if onset is not None and onset.findings:
        return f"Fix what happened in step {onset.last}, and restart from weights saved before it."
    return (
        "Restart from finite weights, an earlier checkpoint or a new model, and record every step, "
        "`update_freq=1` (`tb-gradflow run --update-freq 1`), to see the step in which this starts."
    )


CAUSE = Cause(
    name="nonfinite_weights",
    meaning="trainable weights were NaN or infinite before the step. The report starts with the step in which this "
    "began, if it was recorded, otherwise with what had grown in the last recorded step before it; other problems in "
    "such a step follow from it and are not reported. Or an update for one loss broke them before another loss of the "
    "same step was computed from them",
    severity="error; info where the update of this step broke them",
    fix="restart from earlier weights, and record every step",
    text=message_and_fix,
    without_op="weights were not finite before the step",
    told_at_once=True,
)
