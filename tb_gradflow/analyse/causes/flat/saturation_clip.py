"""A limit clips all values, and has no slope."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.flat.unbounded import Unbounded, unbounded_in
from tb_gradflow.analyse.edits.settings import limits_in_order, without_clipping
from tb_gradflow.analyse.evidence.optimum import is_at_goal
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.op_sets import CLIPS, COPIES, constant_of, limits_exchanged
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.step.measured import is_zero
from tb_gradflow.analyse.words.code import is_simple
from tb_gradflow.analyse.words.fields import ZERO, fields, filled
from tb_gradflow.analyse.words.names import (
    TERMS,
    Group,
    Text,
    blamed,
    call_of,
    called,
    layer_of,
    made_by,
    place_of,
    unused_name,
)
from tb_gradflow.analyse.words.phrases import FROM_LOGITS
from tb_gradflow.analyse.words.steep import less_steep, made_large_between_limits
from tb_gradflow.record.report import Severity
from tb_gradflow.record.schema import Op, Trace

# Zeros stay zeros through these, and nothing else becomes one.
_HANDING_ON = frozenset(
    {"Identity", "Reshape", "Cast", "Squeeze", "ExpandDims", "StridedSlice", "Slice", "GatherV2", "Unpack", "Split"}
)


def rule(suspect: Suspect) -> Verdict | None:
    """Every value lies outside the limits of a clip."""
    clips = suspect.op.type in CLIPS or "clip" in (suspect.op.api or "") or _is_quantised(suspect)
    if clips and _hands_on_the_other_side(suspect):
        return None
    if suspect.op.type == "Relu6" and _lets_something_out(suspect):
        return Verdict("saturation_clip", "warning")
    # Margins that are all satisfied are limits too: a hinge loss of zero is the goal of the training.
    learned = is_at_goal(suspect)
    return Verdict("saturation_clip", "info" if learned else "warning") if clips else None


def _is_quantised(suspect: Suspect) -> bool:
    """Whether the gradient is lost for the values that a fake quantiser rounds, which it also limits to its range."""
    return suspect.op.type.startswith("FakeQuant") and any(edge.input == 0 for edge in suspect.edges)


def held_at_zero(suspect: Suspect) -> Verdict | None:
    """The overlap of boxes that do not touch: `maximum(x, 0)` computes width and height, and their product has no slope
    where both are zero. The slope of the limit itself does not matter, because no gradient arrives there."""
    if suspect.op.type != "Mul" or suspect.measured.is_learned(suspect.target):
        return None
    factors = [edge.op for edge in suspect.op.inputs]
    gradients = [suspect.measured.of_op(suspect.target, factor) for factor in factors if factor >= 0]
    if len(factors) < 2 or len(gradients) < 2 or not all(each is not None and is_zero(each) for each in gradients):
        return None
    limits = [_limit_of(suspect, factor) for factor in factors]
    return Verdict("saturation_clip", "warning", limits[0], _both_at_zero) if min(limits) >= 0 else None


def _handed_on(trace: Trace, op: int) -> int:
    """The op that computes or reads a value that is then only reshaped, cast or cut; -1 if that is not known."""
    while op >= 0 and trace.ops[op].reads is None and trace.ops[op].type in _HANDING_ON:
        given = [edge.op for edge in trace.ops[op].inputs if edge.op >= 0]
        op = given[0] if len(given) == 1 else -1
    return op


def _limit_of(suspect: Suspect, op: int) -> int:
    """The `maximum(x, 0)` that a value comes from; -1 if it comes from anything else."""
    ops, op = suspect.topology.trace.ops, _handed_on(suspect.topology.trace, op)
    at_zero = op >= 0 and ops[op].type == "Maximum" and 0.0 in (constant_of(ops[op], 0), constant_of(ops[op], 1))
    return op if at_zero else -1


def no_probability(suspect: Suspect) -> Verdict | None:
    """Some of them are outside of 0 and 1 in this step and get no gradient from the loss; the others do."""
    if suspect.target < 0:
        return None
    # A loss of zero is the goal of the training, however it is reached.
    learned = suspect.measured.is_learned(suspect.target)
    for found in unbounded_in(suspect):
        if suspect.leads_to(found.layer):
            text = partial(_no_probability, found=found)
            return Verdict("saturation_clip", "info" if learned else "warning", found.clip, text)
    return None


def elements_outside(suspect: Suspect) -> Verdict | None:
    """A variable is clipped as it is, and some of its elements lie outside the limits: they get no gradient, and stay
    there. Information if most lie within: some weights of a quantised layer always lie outside."""
    gradient, topology = suspect.state.gradient, suspect.topology
    if gradient is None or not 0 < gradient.zero_fraction < 1 or suspect.target < 0:
        return None
    ops, shape = topology.trace.ops, topology.trace.variables[suspect.state.variable].shape

    def onward(op: int) -> Iterable[int]:
        return topology.onward(op) if ops[op].type in COPIES or _limits(ops[op], shape) else ()

    for op in walked(topology.readers[suspect.state.variable], onward):
        arriving = suspect.measured.of_op(suspect.target, op)
        if _limits(ops[op], shape) and arriving is not None and not arriving.zero_fraction:
            severity: Severity = "warning" if gradient.zero_fraction >= 0.5 else "info"
            return Verdict("saturation_clip", severity, op, _elements_outside)
    return None


def _limits(op: Op, shape: Sequence[int | None]) -> bool:
    """Whether an op keeps a tensor of this shape within constant limits."""
    given = sum(edge.op >= 0 for edge in op.inputs)
    clips = op.type in CLIPS and given == 1 and len(op.constants) >= (2 if op.type == "ClipByValue" else 1)
    return clips and op.outputs[0].shape == tuple(shape)


_NEARBY = 12


def _hands_on_the_other_side(suspect: Suspect) -> bool:
    """Whether the op chooses between two values that depend on the variable, and the other one gets a gradient: then it
    is no limit, and a later op makes that gradient zero."""
    for edge in suspect.op.inputs:
        given = suspect.measured.of_op(suspect.target, edge.op) if edge.op not in (-1, suspect.producer) else None
        if given is not None and given.max_abs > 0:
            return suspect.leads_to(edge.op)
    return False


def _lets_something_out(suspect: Suspect) -> bool:
    """Whether the output of the op is not zero: a weight that it is multiplied by gets a gradient."""
    topology = suspect.topology
    queue = list(topology.onward(suspect.culprit))
    for op in queue:  # grows while it is walked
        if suspect.type_of(op) in PRODUCTS:
            reads = [topology.trace.ops[edge.op].reads for edge in topology.trace.ops[op].inputs if edge.op >= 0]
            if any(suspect.measured.learns(variable) for variable in reads if variable is not None):
                return True
        elif len(queue) < _NEARBY:
            queue.extend(topology.onward(op))
    return False


_LOSS = re.compile(r"\w+_crossentropy")

# How many ops after a limit are examined for its use.
_NEAR = 6


def message_and_fix(group: Group) -> Text:
    """Probabilities are better not clipped at all; other values can let the gradient pass the limits."""
    names, call, name = fields(group), call_of(group), group.op.name.lower() if group.op else ""
    if (limits := limits_exchanged(group.trace, group.culprit)) is not None:
        low, high = limits
        message = (
            f"the lower limit of {{op}}, {low:.3g}, is greater than the upper limit, {high:.3g}, so that its output is "
            "the same for every input."
        )
        return Text(filled(ZERO + message, names), "Exchange the two limits.")
    if group.verdict.severity == "info":
        message = "{op} clips every value of this step, and the loss is zero: every margin is satisfied."
        return Text(filled(ZERO + message, names), "Nothing to fix: there is nothing left to learn from this batch.")
    message = filled(
        ZERO + "{op} clips every value of this step, and the derivative of a clipped value is zero.", names
    )
    if "crossentropy" in name:
        return Text(
            message,
            "The loss clips values that are not probabilities: end the model with `sigmoid` or `softmax`, or with no "
            "activation and " + FROM_LOGITS + ".",
        )
    if names["behind"] in ("Sigmoid", "Softmax") and _goes_into_a_logarithm(group):
        return Text(message, f"Do not clip `{names['x']}`: {FROM_LOGITS}, which needs no clipping.")
    if (chosen := _chosen_over(group)) >= 0:
        chooser = called(group.trace, chosen) + place_of(group.trace, chosen)
        return Text(
            message
            + f" {chooser[0].upper()}{chooser[1:]} selects the clipped value everywhere, not `{names['x']}` itself.",
            f"Find out why all of `{names['x']}` lies outside the limits. For a ratio of two policies, check that the "
            f"old log-probabilities were kept unchanged, belong to the same actions, and are logarithms.",
        )
    if _goes_into_a_logarithm(group):
        terms = made_by(group, ("Exp",), TERMS)
        total = "keras.ops.logsumexp" if names["lib"] == "keras.ops" else "tf.reduce_logsumexp"
        add = f"Sum in log space, `{total}(log_terms, axis=-1)`, where `log_terms` are the logarithms of the summands"
        scale = "Scale the input so that it lies within the limits: outside of them, no gradient gets through"
        return Text(message, (add if terms else scale) + ".")
    if call is None:
        return Text(message, "Scale the input so that it lies within the limits.")
    if factor := made_large_between_limits(group):
        return Text(message + f" {factor[0].upper()}{factor[1:]}, which is too steep.", less_steep(factor) + ".")
    lib, x, v = names["lib"], call.subject, unused_name(group)
    through = (
        f"`{x} + {lib}.stop_gradient({call.text} - {x})`"
        if is_simple(x)
        else f"`{v} = {x}`, then `{v} + {lib}.stop_gradient({call.with_subject(v)} - {v})`"
    )
    if _is_variable(group) and not group.suspect.measured.largest_before(group.variables[0])[0]:
        return Text(
            message,
            filled("Initialise {names} within the limits: outside of them, no gradient leads back. ", names)
            + f"A straight-through estimator has one: {through}.",
        )
    return Text(
        message, f"Scale the input so that it lies within the limits, or use a straight-through estimator: {through}."
    )


def _both_at_zero(group: Group) -> Text:
    product = group.suspect.culprit
    names = {**fields(group), "product": called(group.trace, product) + place_of(group.trace, product)}
    message = ZERO + "{op} clips both factors of {product} to zero, where the derivative of their product is zero."
    return Text(
        filled(message, names),
        "Add a loss term that has a gradient where both are zero, such as the distance between the compared values. "
        "Passing the gradient through the limit does not help here.",
    )


def _is_variable(group: Group) -> bool:
    """Whether the clipped value is that of a variable."""
    op = _handed_on(group.trace, group.suspect.producer)
    return op >= 0 and group.trace.ops[op].reads is not None


def _chosen_over(group: Group) -> int:
    """The minimum or maximum that chooses between the limited value and the same value without limits; -1 if there is
    none. For every element it chose the limited side: the value itself would have passed a gradient.
    """
    topology, trace = group.suspect.topology, group.trace
    given = {edge.op for edge in group.op.inputs if edge.op >= 0} if group.op is not None else set()
    for op in _behind(group, ("Mul", "Neg", "Maximum", "Minimum", "Identity", "Reshape")):
        sides = [topology.made_by(edge.op) | {edge.op} for edge in trace.ops[op].inputs if edge.op >= 0]
        free = any(given & side and group.culprit not in side for side in sides)
        if free and trace.ops[op].type in ("Minimum", "Maximum"):
            return op
    return -1


def _no_probability(group: Group, found: Unbounded) -> Text:
    arriving, left = (group.suspect.measured.of_op(group.suspect.target, op) for op in (found.last, found.given))
    outside = left.zero_fraction - arriving.zero_fraction if arriving is not None and left is not None else 0.0
    layer, loss = layer_of(group.trace, found.layer), _LOSS.search(group.op.name if group.op is not None else "")
    names = {
        **fields(group),
        "maker": f"layer `{layer}`" if layer else called(group.trace, found.layer) + place_of(group.trace, found.layer),
        "taker": f"`{loss[0]}`" if loss is not None else blamed(group),
        "share": f"{outside:.0%}" if outside >= 0.01 else "less than 1%",
    }
    message = (
        "{they_get} no gradient from part of the batch: {taker} expects probabilities, but nothing keeps the output of "
        "{maker} between 0 and 1. In this step {share} of it lies outside and is clipped, so that its gradient is zero."
        if outside > 0
        else "{they_get} a gradient that is lost where the output of {maker} leaves 0 and 1: {taker} expects "
        "probabilities, and clips what is none, but nothing keeps the output between these. In this step all of it is."
    )
    return Text(
        filled(message, names),
        "End the model with `sigmoid`, or with `softmax` for mutually exclusive classes; or with no activation and "
        + FROM_LOGITS
        + ".",
    )


def _elements_outside(group: Group) -> Text:
    names, call = fields(group), call_of(group)
    fix = "Clip {names} after each update instead of in the loss"
    if call is not None and call.subject.rpartition(".")[2] == names["variable"]:
        x, lib = call.subject, names["lib"]
        fix += f": `{x}.assign({call.text})`. Or use a straight-through estimator: `{x} + {lib}.stop_gradient("
        fix += f"{call.text} - {x})`"
    return Text(
        filled(
            "{they_get} a gradient of exactly zero {elements}: {op} clips them. The derivative of a clipped value is "
            "zero, so no gradient brings them back.",
            names,
        ),
        filled(fix + ".", names),
    )


def _goes_into_a_logarithm(group: Group) -> bool:
    behind = _behind(group, ("Maximum", "Minimum", "Identity", "Reshape", "Squeeze"))
    return any(group.trace.ops[op].type == "Log" for op in behind)


def _behind(group: Group, through: tuple[str, ...]) -> list[int]:
    """The ops that use the culprit's value, directly or after ops of these types."""
    onward, ops = group.suspect.topology.onward, group.trace.ops
    queue = list(onward(group.culprit)) if group.culprit >= 0 else []
    for op in queue:  # grows while it is walked
        if ops[op].type in through and len(queue) < _NEAR:
            queue.extend(onward(op))
    return queue


CAUSE = Cause(
    name="saturation_clip",
    meaning="the gradient becomes zero at a minimum, maximum or clip; or at a product whose factors are all clipped to "
    "zero, such as the overlap of boxes that do not touch. Or the output of a linear layer is clipped like a "
    "probability and goes into a logarithm, and part of it lies outside the limits in this step. Or a variable is "
    "clipped, and some of its elements lie outside: a warning from half of them on",
    severity="warning; error where no variable gets any gradient, in this step or before; info if the loss is zero: "
    "all margins are satisfied",
    fix="clip gradients, not values",
    text=message_and_fix,
    plight="a gradient that a clip blocks in part",
    edits=(limits_in_order, without_clipping),
)
