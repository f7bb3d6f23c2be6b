"""Fractions with which the rows of a table are looked up: as integers they are all the same."""

from __future__ import annotations

from math import trunc

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import LOOKUPS
from tb_gradflow.analyse.words.fields import fields, filled
from tb_gradflow.analyse.words.names import Group, Text, layer_of


def rule(suspect: Suspect) -> Verdict | None:
    """An embedding gets numbers that differ, such as scaled ones between 0 and 1, and makes the same integer of all of
    them: it returns one row for whatever it gets."""
    for each in suspect.topology.trace.ranges:
        if suspect.type_of(each.op) in LOOKUPS and suspect.leads_to(each.op):
            low, high = suspect.measured.range_of(each.op, 1) or (0.0, 0.0)
            if low < high and trunc(low) == trunc(high):
                return Verdict("fractions_as_indices", "warning", each.op, facts=(low, high))
    return None


def message_and_fix(group: Group) -> Text:
    low, high = group.verdict.facts
    layer = layer_of(group.trace, group.culprit)
    name = f"`{layer}`" if layer else "{op}"
    return Text(
        filled(
            f"{{they_get}} a gradient for one row alone: {name} looks up rows by integers, and all numbers that it "
            f"gets in this step, from {low:.6g} to {high:.6g}, become {trunc(low)}. What follows sees the same row "
            "everywhere.",
            fields(group),
        ),
        f"Give {name} the integers of words or classes, not scaled; for numbers that are measured, leave it out, and "
        "begin with a dense layer.",
    )


CAUSE = Cause(
    name="fractions_as_indices",
    meaning="an embedding gets fractions, such as values that were scaled to between 0 and 1, and all of them become "
    "the same integer: it returns the same row everywhere",
    severity="warning",
    fix="integers of words or classes; a dense layer for numbers that are measured",
    text=message_and_fix,
    plight="the gradient of a single row",
    told_at_once=True,
)
