"""Probabilities where a loss expects logits: a softmax, or a sigmoid, is applied twice."""

from __future__ import annotations

from math import exp, log1p

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.settings import logits_instead
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.probabilities import SOFTMAX_LOSSES, applied_twice, probabilities_before
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, called, layer_of, place_of


def rule(suspect: Suspect) -> Verdict | None:
    """The logits of a cross-entropy are the result of a softmax or a sigmoid, so that they lie between 0 and 1."""
    if suspect.target < 0:
        return None
    topology, readers = suspect.topology, suspect.topology.readers[suspect.state.variable]
    influence = topology.influence(suspect.target).hops
    for loss, made in suspect.measured.once("probabilities as logits", lambda: list(applied_twice(topology))):
        if influence[loss] >= 0 and not topology.made_by(made).isdisjoint(readers):
            return Verdict("probabilities_as_logits", "warning", loss)
    return None


def message_and_fix(group: Group) -> Text:
    topology, trace = group.suspect.topology, group.trace
    made = probabilities_before(topology, group.culprit)
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
    "gradient arrives, but it is small, and the loss has a lower bound far above zero",
    severity="warning",
    fix="no activation in the last layer, or a loss of probabilities",
    text=message_and_fix,
    plight="a gradient that is too small",
    edits=(logits_instead,),
)
