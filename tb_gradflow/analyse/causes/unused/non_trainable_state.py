"""A gradient was requested for state that is not trained."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text


def rule(suspect: Suspect) -> Verdict | None:
    """A gradient was requested for moving statistics, and none arrived: harmless."""
    entry = suspect.state.entry
    asked = entry is not None and entry.outcome == "none"
    return Verdict("non_trainable_state", "info") if asked else None


def only_written(suspect: Suspect) -> Verdict | None:
    """A scalar that nothing computes with, and that the step changes: a counter."""
    variable = suspect.topology.trace.variables[suspect.state.variable]
    counts = suspect.culprit < 0 and variable.shape == () and suspect.measured.moved(suspect.state.variable)
    return Verdict("non_trainable_state", "info") if counts else None


def message_and_fix(group: Group) -> Text:
    if any(group.trace.variables[variable].trainable for variable in group.variables):
        return Template(
            "{they_get} no gradient, which is harmless: the step only assigns to {them}, and nothing computes with "
            "{them}.",
            "Mark it as state: `tf.Variable(..., trainable=False)`.",
        )(group)
    return Template(
        "{they_get} no gradient, which is harmless: a gradient was requested for state that is not trained.",
        "Use `model.trainable_variables` instead of `model.variables`.",
    )(group)


CAUSE = Cause(
    name="non_trainable_state",
    meaning="a gradient was requested for moving statistics, or for a counter that the step assigns to",
    severity="info",
    fix="`model.trainable_variables`",
    text=message_and_fix,
    told_at_once=True,
)
