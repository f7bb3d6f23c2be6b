"""Fractions with which the rows of a table are looked up: as integers they are all the same."""

from __future__ import annotations

from math import trunc

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import LOOKUPS
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.words.fields import fields, filled
from tb_gradflow.analyse.words.names import Group, Text, layer_of


def rule(suspect: Suspect) -> Verdict | None:
    """An embedding gets numbers that differ, such as scaled ones between 0 and 1, and makes the same integer of all of
    them: it returns one row for whatever it gets."""
    topology = suspect.topology
    readers = topology.readers[suspect.state.variable]
    for each in topology.trace.ranges:
        is_read = each.op in readers or not topology.made_by(each.op).isdisjoint(readers)
        if topology.trace.ops[each.op].type in LOOKUPS and is_read and _are_cut(suspect.measured, each.op):
            return Verdict("fractions_as_indices", "warning", each.op)
    return None


def _are_cut(measured: Measured, lookup: int) -> bool:
    ends = measured.range_of(lookup, 1)
    return ends is not None and ends[0] < ends[1] and trunc(ends[0]) == trunc(ends[1])


def message_and_fix(group: Group) -> Text:
    low, high = group.suspect.measured.range_of(group.culprit, 1) or (0.0, 0.0)
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
