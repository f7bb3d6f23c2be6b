"""Predictions that are no distribution over the classes, under a categorical cross-entropy that makes one of them: the
last activation is a sigmoid, for example."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.settings import softmax_instead
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import SAME_VALUES
from tb_gradflow.analyse.graph.probabilities import SOFTMAX_LOSSES
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, called, layer_of, place_of
from tb_gradflow.analyse.words.phrases import FROM_LOGITS

_OF_KERAS = "categorical_crossentropy"

_NAMES = {
    "Sigmoid": "a sigmoid",
    "Relu": "a ReLU",
    "Relu6": "a ReLU",
    "Elu": "an ELU",
    "Selu": "a SELU",
    "Tanh": "a tanh",
    "Softplus": "a softplus",
    "BiasAdd": "no activation",
}
"""What is no softmax, and how a layer ends with it."""


@dataclass(frozen=True, slots=True)
class _Mismatch:
    """Predictions, and what the loss makes of them.

    Attributes:
        loss: The cross-entropy; or the division of the predictions by their sum.
        made: The last activation.
    """

    loss: int
    made: int


def rule(suspect: Suspect) -> Verdict | None:
    """A categorical cross-entropy of Keras gets the results of another activation than a softmax. Of a sigmoid it takes
    the values in front, and applies a softmax to those: the sigmoid is no part of the loss then. Others it divides by
    the sum of the row."""
    if suspect.target < 0:
        return None
    topology = suspect.topology
    influence = topology.influence(suspect.target).hops
    for each in suspect.measured.once("no distribution", lambda: list(_mismatches(topology))):
        if influence[each.loss] >= 0 and suspect.leads_to(each.made):
            return Verdict("not_a_distribution", "warning", each.made, facts=each)
    return None


def _mismatches(topology: Topology) -> Iterator[_Mismatch]:
    ops = topology.trace.ops
    for loss in (place for kind in sorted(SOFTMAX_LOSSES) for place in topology.by_type.get(kind, ())):
        if _OF_KERAS in ops[loss].name:
            logits = topology.origin(topology.first_input(loss), SAME_VALUES)
            beside = topology.onward(logits) if logits >= 0 else ()
            yield from (
                _Mismatch(loss, op) for op in beside if ops[op].type == "Sigmoid" and _has_several(topology, op)
            )
    for division in topology.by_type.get("RealDiv", ()):
        if _OF_KERAS in ops[division].name and len(ops[division].inputs) == 2:
            above, below = (edge.op for edge in ops[division].inputs)
            if below >= 0 and ops[below].type == "Sum" and [edge.op for edge in ops[below].inputs] == [above]:
                above = topology.origin(above, SAME_VALUES)
                if above >= 0 and ops[above].type in _NAMES and _has_several(topology, division):
                    yield _Mismatch(division, above)


def _has_several(topology: Topology, op: int) -> bool:
    shape = topology.trace.ops[op].outputs[0].shape if topology.trace.ops[op].outputs else None
    return shape is not None and len(shape) > 1 and shape[-1] != 1


def message_and_fix(group: Group) -> Text:
    trace, found = group.trace, group.verdict.facts
    layer = layer_of(trace, found.made)
    maker = f"layer `{layer}`" if layer else called(trace, found.made) + place_of(trace, found.made)
    kind = _NAMES[trace.ops[found.made].type]
    whose = "and its results" if kind == "no activation" else "whose results"
    is_left_out = trace.ops[found.loss].type in SOFTMAX_LOSSES
    does = (
        "the loss leaves the sigmoid out, and applies a softmax to the values in front of it"
        if is_left_out
        else "the loss divides each row by its sum"
    )
    fix = 'End the model with `activation="softmax"`.'
    if kind == "a sigmoid":
        fix = (
            'If each row has one class, end the model with `activation="softmax"`; if it may have several, keep the '
            'sigmoid, and use `loss="binary_crossentropy"`.'
        )
    elif kind == "no activation":
        fix = f'End the model with `activation="softmax"`; or leave it without an activation, and {FROM_LOGITS}.'
    return Template(
        f"{{they_get}} the gradient of {'a softmax that the model does not have' if is_left_out else 'a quotient'}: "
        "a categorical cross-entropy expects probabilities that add up to one in each row, "
        f"{maker} ends in {kind}, {whose} do not, and {does}.",
        fix,
    )(group)


CAUSE = Cause(
    name="not_a_distribution",
    meaning="another last activation than a softmax in front of a categorical cross-entropy of Keras: of what a "
    "sigmoid is computed from, the loss takes a softmax, which the model does not return; the results of others it "
    "divides by the sum of the row, which may be zero",
    severity="warning",
    fix="softmax for one class in each row, `binary_crossentropy` for several",
    text=message_and_fix,
    plight="the gradient of probabilities that the model does not return",
    told_at_once=True,
    edits=(softmax_instead,),
)
