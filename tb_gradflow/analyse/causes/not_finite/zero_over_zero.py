"""A division by zero."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.not_finite import no_quotient_of_nothing
from tb_gradflow.analyse.evidence.signs import vanishing_exponential
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import is_without_elements
from tb_gradflow.analyse.words.broken import BROKEN, logsumexp
from tb_gradflow.analyse.words.cut_at_zero import of_relu
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, call_of, called, place_of, source_of


def mean_of_nothing(suspect: Suspect) -> Verdict | None:
    """The mean of an empty tensor is NaN, whatever else the loss contains. Its gradient is an empty tensor, which shows
    no NaN."""
    if suspect.measured.loss_is_finite(suspect.target):
        return None
    place = suspect.measured.once(("mean of nothing", suspect.target), lambda: _mean_of_nothing(suspect))
    return Verdict("zero_over_zero", "error", place) if place >= 0 else None


def _mean_of_nothing(suspect: Suspect) -> int:
    topology = suspect.topology
    reaches = topology.influence(suspect.target).hops
    for op, each in enumerate(topology.trace.ops):
        given = [edge for edge in each.inputs if edge.input == 0]
        if (
            each.type == "Mean"
            and reaches[op] >= 0
            and any(is_without_elements(topology.trace, edge) for edge in given)
        ):
            return op
    return -1


def _named(group: Group, op: int) -> str:
    return called(group.trace, op) + place_of(group.trace, op)


def message_and_fix(group: Group) -> Text:
    if group.op is not None and group.op.type == "Mean":
        emptied = _emptied(group)
        if emptied >= 0:
            return _of_no_elements(group, emptied)
        return Template(
            BROKEN + "{op} averages an empty tensor: no element was left in this step.",
            "Count an empty selection as zero: `tf.math.divide_no_nan(tf.reduce_sum({x}), tf.cast(tf.size({x}), "
            "tf.float32))`.",
        )(group)
    if group.op is not None and group.op.type in _ANGLES:
        why, fix = _ANGLES[group.op.type]
        return Template(BROKEN + why, fix)(group)
    divisor = next((edge.op for edge in group.op.inputs if edge.input == 1), -1) if group.op is not None else -1
    vanished = vanishing_exponential(group.trace, divisor)
    if vanished >= 0:
        return Template(
            BROKEN
            + "{op} divides by zero: "
            + _named(group, vanished)
            + " underflows to zero for inputs far below zero.",
            f"Stay in log space: use `{logsumexp(group)}(log_terms)` for a sum of exponentials, and subtract where "
            "{op} divides.",
        )(group)
    if group.op is not None and "/categorical_crossentropy/" in group.op.name:
        return Template(
            BROKEN
            + "{op} divides each row of the predictions by its sum, and that of some rows is zero: a categorical "
            "cross-entropy expects probabilities.",
            'End the model with `activation="softmax"`.',
        )(group)
    call = call_of(group)
    over = ", ".join(call.arguments[:2]) if call and call.head == "/" else "total, count"
    return Template(BROKEN + "{op} divides zero by zero.", f"Divide safely: `tf.math.divide_no_nan({over})`.")(group)


def _emptied(group: Group) -> int:
    """The earlier op that computes an empty tensor from tensors that are not empty, according to the shapes; -1 if
    there is none."""
    ops = group.trace.ops
    for op in group.suspect.topology.ancestors(group.culprit):
        shape = ops[op].outputs[0].shape if ops[op].outputs else None
        if shape and 0 in shape and not any(is_without_elements(group.trace, edge) for edge in ops[op].inputs):
            return op
    return -1


def _of_no_elements(group: Group, emptied: int) -> Text:
    shape, source = group.trace.ops[emptied].outputs[0].shape, source_of(group.trace, emptied)
    code = f"`{source.code}`" if source is not None and source.code else "it"
    said = Template(BROKEN + "{op} averages an empty tensor: ", "")(group).message
    return Text(
        f"{said}the result of {_named(group, emptied)} has shape {shape}, and therefore no elements.",
        f"Fix {code}: it selects none of the elements that it is given, and the mean of an empty tensor is NaN.",
    )


_ANGLES = {
    "Angle": (
        "{op} is given 0 + 0j, which has no angle: its derivative divides zero by zero there.",
        "Exclude zeros: `ok = tf.abs({x}) > 0`, then `{head}(tf.where(ok, {x}, tf.ones_like({x})))`.",
    ),
    "Atan2": (
        "{op} is given two zeros, which have no angle: its derivative divides zero by zero there.",
        "Exclude such points: replace one of the two by 1 where both are zero, `x = tf.where((x == 0) & (y == 0), "
        "1.0, x)`.",
    ),
}


CAUSE = Cause(
    name="zero_over_zero",
    meaning="the gradient becomes NaN or infinite at a division by a value that is not constant, or at the mean of an "
    "empty tensor",
    severity="error",
    fix="`tf.math.divide_no_nan`",
    text=of_relu(message_and_fix),
    edits=(no_quotient_of_nothing,),
    quotes=(
        "Divide safely: ",
        "Count an empty selection as zero: ",
    ),
)
