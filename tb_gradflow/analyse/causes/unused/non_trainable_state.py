"""A gradient was requested for state that is not trained."""

from __future__ import annotations

import ast
import re

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.step.movement import movement_of
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.record.python import calls_within, name_of, parsed
from tb_gradflow.record.schema import Trace


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


def kept_up(suspect: Suspect) -> Verdict | None:
    """The step computes the value of the variable itself and assigns it, as moving averages give the codebook of a
    VQ-VAE: no gradient arrives, the variable moves without an optimizer, and the user's code assigns to it a value that
    is not computed from it, as a limit or a normalisation would be."""
    variable, update = suspect.state.variable, movement_of(suspect.measured, suspect.state.variable)
    # An optimizer that got zeros alone, and remembers nothing else, has not moved it.
    by_optimizer = update is not None and (
        update.zeros < update.size or update.remembered > 0 or update.known.decay > 0
    )
    if not suspect.measured.moved(variable) or by_optimizer:
        return None
    trace = suspect.topology.trace
    assigned = [each for passage in trace.passages for each in _assigned(passage.text, _attribute(trace, variable))]
    return Verdict("non_trainable_state", "info") if assigned and not any(assigned) else None


def _attribute(trace: Trace, variable: int) -> str:
    """The last part of the name of a variable, by which an attribute of the user's is likely to hold it."""
    return re.split(r"[/.]", trace.variables[variable].written or trace.variables[variable].name)[-1]


def _assigned(code: str, name: str) -> list[bool]:
    """For each value that code assigns to `name`, whether it is computed from it."""
    if f"{name}.assign(" not in code:
        return []
    tree = parsed(code)
    return [
        any(name_of(part) == name for given in call.args for part in ast.walk(given))
        for call in (calls_within(tree, "assign") if tree is not None else ())
        if isinstance(call.func, ast.Attribute) and name_of(call.func.value) == name
    ]


def message_and_fix(group: Group) -> Text:
    if kept_up(group.suspect) is not None:
        return Template(
            "{they_get} no gradient from the loss: the step computes {their} value itself, and assigns it with "
            f"`{_attribute(group.trace, group.variables[0])}.assign(...)`.",
            "Nothing to fix if only that should change {them}, as moving averages change a codebook. Then mark {them} "
            "as state: `tf.Variable(..., trainable=False)`.",
        )(group)
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
    meaning="a gradient was requested for moving statistics, or for a counter that the step assigns to; "
    "or the step computes the variable's value itself and assigns it, as moving averages do",
    severity="info",
    fix="`model.trainable_variables`",
    text=message_and_fix,
    told_at_once=True,
)
