"""Probabilities where a loss expects logits: a softmax, or a sigmoid, is applied twice. Or labels, if they and what the
model returns are given to the loss in each other's place."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log1p

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.settings import logits_instead
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import SOFTMAX_LOSS
from tb_gradflow.analyse.graph.probabilities import (
    LOGITS,
    SIGMOID_LOSS,
    SOFTMAX_LOSSES,
    applied_twice,
)
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, called, layer_of, place_of


def rule(suspect: Suspect) -> Verdict | None:
    """The logits of a cross-entropy are the result of a softmax or a sigmoid, so that they lie between 0 and 1."""
    if suspect.target < 0:
        return None
    topology = suspect.topology
    influence = topology.influence(suspect.target).hops
    for loss, made in suspect.measured.once("probabilities as logits", lambda: list(applied_twice(topology))):
        if influence[loss] >= 0 and suspect.leads_to(made):
            return Verdict("probabilities_as_logits", "warning", loss, facts=made)
    return None


def exchanged(suspect: Suspect) -> Verdict | None:
    """What the model returns is given to a cross-entropy as labels, and a part of the batch as logits, which has only
    values of labels. Logits that were computed before, such as those of a teacher, have others."""
    if suspect.target < 0:
        return None
    way = suspect.topology.gradient(suspect.target).hops
    for op in suspect.measured.once("labels as logits", lambda: list(_labels_as_logits(suspect.measured))):
        if way[op] >= 0 and suspect.leads_to(op):
            return Verdict("probabilities_as_logits", "warning", op, text=_exchanged)
    return None


def _labels_as_logits(measured: Measured) -> Iterator[int]:
    trace = measured.topology.trace
    for each in trace.ranges:
        op = trace.ops[each.op]
        of_logits = op.type == SOFTMAX_LOSS or (op.type == "Mul" and SIGMOID_LOSS in op.name)
        given = measured.range_of(each.op, each.input) if of_logits and each.input == LOGITS else None
        if given is not None and given[0] == 0 and 0 < given[1] <= 1:
            yield each.op


def _exchanged(group: Group) -> Text:
    function = "softmax" if group.op is not None and group.op.type == SOFTMAX_LOSS else "sigmoid"
    return Template(
        "{they_get} the gradient of a loss whose arguments are exchanged: "
        f"`tf.nn.{function}_cross_entropy_with_logits`{{place}} gets as logits a part of the batch whose values "
        f"lie between 0 and 1, as those of labels do, and applies the {function} to these; and as labels it gets "
        "what is computed from {them}.",
        f"Exchange them: `labels=` the part of the batch, and `logits=` what the model returns, without a {function}.",
    )(group)


def message_and_fix(group: Group) -> Text:
    trace, made = group.trace, group.verdict.facts
    kind = "softmax" if trace.ops[made].type == "Softmax" else "sigmoid"
    where = called(trace, made) + place_of(trace, made)
    shape = trace.ops[made].outputs[0].shape if trace.ops[made].outputs else None
    layer = layer_of(trace, made) if trace.ops[made].api is None else ""
    without = (
        f"Remove the {kind} from layer `{layer}`, so that it returns logits."
        if layer
        else f"Pass the value in front of {called(trace, made)} to the loss."
    )
    if group.op is not None and group.op.type in SOFTMAX_LOSSES:
        classes = shape[-1] if shape else 0
        least = f" With {classes} classes, the loss cannot fall below {log1p((classes - 1) * exp(-1)):.2f}."
        return Template(
            "{they_get} a gradient that is too small: {op} expects logits, and applies a softmax to them, but what it "
            f"gets are the results of a {kind}, {where}, which lie between 0 and 1." + (least if classes > 1 else ""),
            without + f" Or keep the {kind}, and use a loss that expects probabilities: "
            "`keras.losses.SparseCategoricalCrossentropy()`, or `CategoricalCrossentropy()` for one-hot labels.",
        )(group)
    return Template(
        "{they_get} a gradient that is too small: `tf.nn.sigmoid_cross_entropy_with_logits`{place} expects logits, and "
        f"applies a sigmoid to them, but what it gets are the results of a {kind}, {where}, which lie between 0 and 1. "
        f"The loss cannot fall below {log1p(exp(-1)):.2f} for labels of 1, and {log1p(1):.2f} for labels of 0.",
        without + f" Or keep the {kind}, and use a loss that expects probabilities: "
        "`keras.losses.BinaryCrossentropy()`.",
    )(group)


CAUSE = Cause(
    name="probabilities_as_logits",
    meaning="the logits of a softmax or sigmoid cross-entropy are themselves the result of a softmax or a sigmoid: the "
    "gradient arrives, but it is small, and the loss has a lower bound far above zero. Or they are labels of the "
    "batch, and what the model returns is given as labels",
    severity="warning",
    fix="no activation in the last layer, or a loss of probabilities",
    text=message_and_fix,
    plight="a misleading gradient",
    edits=(logits_instead,),
)
