"""A dropout of what the loss compares with the targets: predictions that are zero at random."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.comparisons import DIFFERENCES, is_averaged
from tb_gradflow.analyse.graph.op_sets import CHOICES, SAME_VALUES, constant_of
from tb_gradflow.analyse.graph.probabilities import SOFTMAX_LOSSES
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, layer_of

_ACTIVATIONS = frozenset({"Softmax", "LogSoftmax", "Sigmoid"})

_IN_LOSSES = frozenset({"Log", "Log1p", "Neg", "Minimum", "Maximum", "ClipByValue", "RealDiv"})
"""What a cross-entropy does with probabilities before it multiplies them by the targets."""


@dataclass(frozen=True, slots=True)
class _Dropped:
    """Predictions, some of which are set to zero.

    Attributes:
        dropout: The op that chooses between a value and zero.
        is_logit: Whether a softmax or a sigmoid follows.
    """

    dropout: int
    is_logit: bool


def rule(suspect: Suspect) -> Verdict | None:
    """Between the last layer and the targets stands a dropout, and at most a softmax or a sigmoid besides. Whatever the
    layer computes, a part of its results is zero in the loss, others in each step: no weights predict that. A mask that
    both the predictions and the targets have chooses what is to be learned."""
    if suspect.target < 0:
        return None
    measured, target = suspect.measured, suspect.target
    for each in measured.once(("dropped", target), lambda: list(_dropped(measured, target))):
        if suspect.leads_to(each.dropout):
            return Verdict("predictions_dropped", "warning", each.dropout, facts=each)
    return None


def _dropped(measured: Measured, target: int) -> Iterator[_Dropped]:
    topology = measured.topology
    ops, hops = topology.trace.ops, topology.gradient(target).hops
    for op, place in _comparisons(topology, target):
        is_logit = ops[op].type in SOFTMAX_LOSSES or "logistic_loss" in ops[op].name
        while hops[op] >= 0:
            op = next((edge.op for edge in ops[op].inputs if edge.input != place and edge.op >= 0), -1)
            if op < 0 or ops[op].reads is not None:
                break
            place = -1
            if _is_dropout(topology, op) and _drops(measured, target, op):
                yield _Dropped(op, is_logit)
            is_logit |= ops[op].type in _ACTIVATIONS
            if ops[op].type not in SAME_VALUES | _ACTIVATIONS | _IN_LOSSES:
                break


def _comparisons(topology: Topology, target: int) -> Iterator[tuple[int, int]]:
    """Where predictions are compared with a part of the batch, and which input that is."""
    ops = topology.trace.ops
    for kind in sorted(SOFTMAX_LOSSES):
        yield from ((op, 1) for op in topology.by_type.get(kind, ()))
    for each in topology.trace.ranges:
        if ops[each.op].type == "Mul" or (ops[each.op].type in DIFFERENCES and is_averaged(topology, each.op, target)):
            yield each.op, each.input


_SCOPE = re.compile(r"(?:^|/)(?:stateless_)?dropout(?:_\d+)?/[^/]+$")
"""Of the ops of TensorFlow's functions."""


def _is_dropout(topology: Topology, op: int) -> bool:
    """Whether an op chooses between a value and zero by random numbers alone: those of a generator that the step does
    not keep are not recorded."""
    ops = topology.trace.ops
    if ops[op].type not in CHOICES or 0.0 not in (constant_of(ops[op], 1), constant_of(ops[op], 2)):
        return False
    chosen = topology.first_input(op)
    if chosen < 0:
        return bool(_SCOPE.search(ops[op].name))
    made = [ops[each] for each in topology.made_by(chosen)]
    is_random = any("Random" in each.type for each in made)
    return is_random and not any(
        each.reads is not None and topology.trace.variables[each.reads].trainable for each in made
    )


def _drops(measured: Measured, target: int, dropout: int) -> bool:
    """Whether it cuts some of the gradient off: a rate that is fed may be zero."""
    places = [edge.op for edge in measured.topology.trace.ops[dropout].inputs if edge.input > 0 and edge.op >= 0]
    left = [measured.of_op(target, place) for place in places]
    return not left or any(each is None or each.zero_fraction > 0 for each in left)


def message_and_fix(group: Group) -> Text:
    found: _Dropped = group.verdict.facts
    layer = layer_of(group.trace, found.dropout)
    name = f"the dropout `{layer}`" if layer else "{op}, a dropout,"
    what = "logits" if found.is_logit else "predictions"
    return Template(
        f"{{they_get}} the gradient of {what} that are zero at random: {name} sets some of them to zero, others in "
        "each step, and the loss compares what is left with the targets. No weights follow that could make up for it.",
        f"Move {f'`{layer}`' if layer else 'the dropout'} in front of the last layer with weights, or remove it.",
    )(group)


CAUSE = Cause(
    name="predictions_dropped",
    meaning="a dropout between the last layer and the targets: some of the logits, probabilities or predictions that "
    "the loss compares with the targets are zero, others in each step. Not a mask that the targets have too",
    severity="warning",
    fix="move the dropout in front of the last layer",
    text=message_and_fix,
    plight="the gradient of predictions that are dropped at random",
    told_at_once=True,
)
