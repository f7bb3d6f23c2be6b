"""An attribute that held the variable now holds a tensor."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.variables import assigned_in_place, in_place
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.words.fields import Template, fields
from tb_gradflow.analyse.words.names import Group, Text, quoted
from tb_gradflow.analyse.words.phrases import braces


def rule(suspect: Suspect) -> Verdict | None:
    """The attribute that held the variable now holds a tensor. Applied to connected variables too, because this step
    may have replaced it."""
    variable = suspect.topology.trace.variables[suspect.state.variable]
    return Verdict("variable_rebound", "error") if variable.rebound else None


def message_and_fix(group: Group) -> Text:
    names = fields(group)
    place = group.trace.variables[group.variables[0]].rebound or names["variable"]
    later = group.suspect.state.status == "connected"
    if group.trace.variables[group.variables[0]].computed:
        several = len(group.variables) > 1
        what = (
            "they were variables and have been overwritten with tensors"
            if several
            else f"`{place}` was a variable and has been overwritten with a tensor"
        )
        # The tensor of `w` is called `w (2)` in the report, next to the variable.
        lost = [group.trace.variables[each].rebound for each in group.variables]
        they_get = f"{quoted(lost)} {'get' if several else 'gets'}"
        return Template(
            f"{they_get} no gradient: {what}, which a tape does not watch automatically.",
            f"Change {'each' if several else 'the'} variable in place: " + braces(_instead(group, place)),
        )(group)
    message = (
        f"{names['they_are']} lost: the step assigns a tensor to `{place}`, and from the next step on nothing trains "
        f"it."
        if later
        else f"{names['they_get']} no gradient: `{place}` holds a tensor instead of the variable, and a tensor is not "
        f"trained."
    )
    return Text(
        message,
        "Change the variable in place: " + _instead(group, place)[:-1] + ", or `optimizer.apply_gradients(...)`.",
    )


def _instead(group: Group, place: str) -> str:
    """The user's own line, changed, if there is such a line."""
    before, after = in_place(group) or (
        f"{place} = {place} - rate * gradient",
        f"{place}.assign_sub(rate * gradient)",
    )
    return f"`{after}` instead of `{before}`."


CAUSE = Cause(
    name="variable_rebound",
    meaning="the attribute that held the variable holds a tensor, `self.w = self.w - rate * g`",
    severity="error",
    fix="`assign_sub`",
    text=message_and_fix,
    plight="overwritten by a tensor",
    edits=(assigned_in_place,),
)
