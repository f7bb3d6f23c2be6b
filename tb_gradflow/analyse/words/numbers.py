"""Words for gradients that arrive and are zero, tiny or huge."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cancelling import same_on_both_sides
from tb_gradflow.analyse.causes.goal import is_at_goal
from tb_gradflow.analyse.causes.recurrence import LARGE_DATA, is_recurrent
from tb_gradflow.analyse.causes.strength import common_to_a_softmax, course_of, product_with_next_to_nothing
from tb_gradflow.analyse.evidence.suspects import NO_OP
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.op_sets import LOOPS, constant_of
from tb_gradflow.analyse.words.code import Call, call_on, calls_in_order
from tb_gradflow.analyse.words.fields import SIZE, ZERO, Template, fields
from tb_gradflow.analyse.words.names import Group, Text, Writer, call_of, namespace
from tb_gradflow.analyse.words.steep import less_steep, made_large


def zero_gradient(group: Group) -> Text:
    in_part = group.suspect.type_of(group.suspect.culprit) in ("Complex", "Cast") and group.verdict.culprit >= 0
    if in_part and group.op is not None:
        kept, lost = ("imaginary", "real") if group.op.type == "Imag" else ("real", "imaginary")
        return Template(
            ZERO + f"what comes from {{them}} is the {lost} part of complex numbers, and {{op}} keeps the {kept} part "
            "alone.",
            "Let the loss see both parts: `tf.abs(z)`, or `tf.concat([tf.math.real(z), tf.math.imag(z)], axis=-1)`.",
        )(group)
    if group.op is not None and group.op.type == "Cumprod":
        call, x = call_of(group), fields(group)["bx"]
        kept = call.with_subject(f"{x} + 1e-06") if call is not None else f"tf.math.cumprod({x} + 1e-06)"
        return Template(
            ZERO + "{op} is given a zero, and TensorFlow's derivative of it says zero there, whatever the slope is.",
            "Keep away from zero: `" + _braces(kept) + "`; or add up logarithms, `tf.exp(tf.cumsum(log_factors))`.",
        )(group)
    if group.op is not None and group.op.type in _TAKING:
        return Template(
            ZERO + "{op} takes out a part that is not made of {them}.",
            "Take the part that is: look at the index.",
        )(group)
    if group.verdict.severity != "info" and (steep := _underflows(group)) is not None:
        return steep
    why = "it is there behind {op}, and zero in front of it"
    if group.op is not None and group.op.type in ("Mul", "MatMul", "BatchMatMulV2", "Einsum", "Conv2D"):
        single = all(group.trace.variables[each].shape in ((), (1,)) for each in group.variables)
        why = "in this step {op} multiplies with zeros" + (", or its gradients add up to nothing" if single else "")
    if group.verdict.severity == "info" and is_at_goal(group.suspect):
        return _learned(group)
    return Template(ZERO + why + ".", "Look at what {op} is given in this step.")(group)


# From this exponent on, a power of a number below one half is less than a thousandth.
_HIGH_POWER = 10.0


def _underflows(group: Group) -> Text | None:
    """Of exponentials and high powers, which are flat where what they make is too small for a number."""
    if group.op is None or group.op.type not in ("Exp", "Pow"):
        return None
    factor, scaled = made_large(group), "Scale what goes in, until it is of about one."
    told = f" {factor[0].upper()}{factor[1:]}: that is steep." if factor else ""
    if group.op.type == "Exp":
        why = "{op} rounds to zero: what goes in is below -88, for every element that counts."
        return Template(ZERO + why + told, less_steep(factor) + "." if factor else scaled)(group)
    power = constant_of(group.op, 1)
    if power is None or power < _HIGH_POWER:
        return None
    why = f"{{op}} raises to the power of {power:.3g}, and of what is well below one that rounds to zero."
    return Template(ZERO + why + told, "Take a smaller power, or scale what goes in, until it is of about one.")(group)


def _learned(group: Group) -> Text:
    return Template(
        SIZE + "the loss is next to zero, and nothing in this batch is left to learn.", "Nothing to repair."
    )(group)


_TAKING = frozenset({"StridedSlice", "Slice", "GatherV2", "GatherNd"})


def cancelling(group: Group) -> Text:
    """Of a density at a sample of its own the sample is to be stopped, by its name where their line tells it."""
    if group.op is not None and group.op.type in _WITHOUT_SLOPE and group.verdict.culprit < 0:
        return Template(
            ZERO + "both sides of {op} are computed from {them}, and in this step they are equal in every element.",
            "Let them differ, by augmentation or dropout that is switched on, `training=True`, or leave this term out.",
        )(group)
    if same_on_both_sides(group.suspect) is not None:
        return _same(group)
    names, stopped = fields(group), _stopped_sample(group)
    why = "several ways lead to the loss, and their gradients cancel at {op}."
    if not group.suspect.state.receives:
        asked = call_on(group.source.code, "log_prob") if group.source is not None else None
        names["head"] = asked.head if asked is not None else "log_prob"
        why = (
            "`{head}`{place} is asked for a sample of the same distribution, and what moved the sample falls out again."
        )
    fix = "Stop one of them: for a score function `log_prob(tf.stop_gradient(sample))`, so that `{variable}` acts "
    if stopped:
        if group.suspect.state.receives:
            why = "{op} takes out again what moved the sample."
        why += (
            " That is right: a sample `loc + scale * noise` moves with its `loc`, and its density there is that of "
            "the noise, whatever `loc` is."
        )
        fix = (
            "Nothing to repair if you differentiate the expectation of something else that is made of the sample. "
            f"For a score function, or the density of a value that stays, stop the sample: `{stopped}`, so that what "
            "it was drawn from acts "
        )
    return Text((SIZE + why).format_map(names), fix.format_map(names) + "through the density alone.")


def _same(group: Group) -> Text:
    call, names = call_of(group), fields(group)
    other = call.arguments[1] if call is not None and call.is_operator and len(call.arguments) == 2 else "..."
    why = "both sides of {op} are what the same weights make of the same values, and their gradients cancel."
    held = f"`{namespace(group)}.stop_gradient({other})`"
    return Text(
        (SIZE + why).format_map(names), f"Hold one side still: {held}, or a value that was kept from before the update."
    )


# Of no difference, and then flat.
_WITHOUT_SLOPE = ("SquaredDifference", "Square", "Abs")


def _stopped_sample(group: Group) -> str:
    """The user's `log_prob(sample)`, or their `sample - mean` of a sample that is made of the mean, with the sample
    stopped; the bare sample where their line does not tell which difference it is; empty if there is neither."""
    source, op = group.source, group.op
    if source is None or op is None:
        return ""
    density = call_on(source.code, "log_prob")
    if density is not None:
        return _braces(density.with_subject(f"tf.stop_gradient({density.subject})"))
    call, places = call_of(group), [edge.op for edge in op.inputs]
    if op.type != "Sub" or len(places) != 2 or min(places) < 0:
        return ""
    sample = next((each for each in (0, 1) if _is_made_of(group, places[each], places[1 - each])), None)
    if sample is None:
        return ""
    if call is None or any(each.text != call.text and each.text in call.text for each in _differences(source.code)):
        return "tf.stop_gradient(sample)"
    sides = [*call.arguments]
    sides[sample] = f"tf.stop_gradient({sides[sample]})"
    return _braces(f"{sides[0]} - {sides[1]}")


def _differences(code: str) -> list[Call]:
    return calls_in_order(code, "-")


def _is_made_of(group: Group, op: int, other: int) -> bool:
    """Whether a value is made of another one, or of the same variable read once more."""
    made, ops = group.suspect.topology.made_by(op), group.trace.ops
    reads = ops[other].reads
    return other in made or (reads is not None and any(ops[each].reads == reads for each in made))


def _braces(code: str) -> str:
    return code.replace("{", "{{").replace("}", "}}")


def _diverged(group: Group) -> Text:
    """Nothing in the step alone makes it that large: it is what the steps before have made of the weights, or, where
    there were none, what the weights began with.
    """
    measured = group.suspect.measured
    if measured.largest_input > LARGE_DATA:
        return Template(
            "{plight}: what {op} computes is too large for a number. The batch holds numbers as large as "
            f"{measured.largest_input:.0e}.",
            "Scale what goes in, and what is to come out: `(x - x.mean(0)) / (x.std(0) + 1e-7)`.",
        )(group)
    compared = f", where the batch reaches {measured.largest_input:.2g}" if measured.largest_input else ""
    if measured.step == 0:
        return Template(
            "{plight} in the very first step: what {op} computes is too large for a number, and gradients "
            f"reach {measured.largest:.0e}{compared}.",
            "Begin with smaller weights, or bound what goes into exponentials, powers and quotients on the way: "
            "they make a large number of a small one.",
        )(group)
    return Template(
        "{plight}: the training diverges. What {op} computes is too large for a number, and gradients of this step "
        f"reach {measured.largest:.0e}{compared}: the steps before have made the weights that large.",
        "Lower the learning rate; if it is a schedule or a callback that sets it, look at what it gives in the steps "
        "before this one. Clip gradients, `keras.optimizers.Adam(clipnorm=1.0)`, so that one step cannot do it alone.",
    )(group)


def exploding(group: Group) -> Text:
    """Large, or so large that it is not finite any more, in the forward pass already or on the way back alone."""
    suspect = group.suspect
    tame = 'start recurrent weights with `recurrent_initializer="orthogonal"`'
    recurs = any(suspect.topology.by_type.get(kind) for kind in LOOPS) or any(
        "recurrent" in name for name in group.names
    )
    if suspect.state.status in ("nan", "inf") or not suspect.measured.loss_is_finite(suspect.target):
        grown = suspect.measured.loss_is_finite(suspect.target)
        if not grown and not is_recurrent(suspect):
            return _diverged(group)
        what = "the gradient" if grown else "what {op} computes"
        where = " on its way back through {op}" if grown else ""
        return Template(
            "{plight}: " + what + " is multiplied with the same weights again and again" + where + ", and grows until "
            "it is infinite.",
            f'Keep the factor near one: {tame}; bound the state, `activation="tanh"`; take fewer steps. Clipping '
            "gradients comes too late for what is infinite.",
        )(group)
    if group.op is not None and group.op.type in ("RealDiv", "Div", "Reciprocal", "Xdivy") and _alone(group):
        return Template(
            SIZE + "{op} divides by something next to zero.",
            "Give the divisor a floor that fits the data, `{lib}.maximum(divisor, 1e-2)`, or measure differences that "
            "are not relative: a percentage of nothing is infinite.",
        )(group)
    if group.op is not None and group.op.type in ("Exp", "Expm1") and _alone(group):
        return Template(
            SIZE + "it is multiplied with what {op} gives, which is that large.",
            "Bound what goes in, `{head}({lib}.minimum({x}, 10.0))`; if it is a quotient, keep its divisor away from "
            "zero.",
        )(group)
    return Template(
        SIZE + "it grows on the way from the loss, most of all at {op} and its like.",
        "Clip it, `keras.optimizers.Adam(clipnorm=1.0)`; scale inputs and targets to about 1"
        + (f"; {tame}." if recurs else "; lower the learning rate, if it was small in earlier steps."),
    )(group)


def fading(group: Group) -> Text:
    if group.verdict.culprit == NO_OP:
        return Template(
            SIZE + "where it fades is not known: the loss was eager, so its way is not recorded.",
            "Take the step inside of `tf.function`, or record it with `tb_gradflow.watch`, to see it. Where terms of "
            "the loss cancel, or stand on both sides of a quotient, nothing but rounding is left.",
        )(group)
    if group.verdict.severity == "info" and common_to_a_softmax(group.suspect) is not None:
        return Template(
            SIZE + "it arrives at {op} and nearly cancels there: what comes from {them} is added to all entries alike, "
            "and the softmax behind takes that out again.",
            "Nothing to repair where this grows in later steps: it does as the entries become different.",
        )(group)
    if group.verdict.severity == "info" and product_with_next_to_nothing(group.suspect) == group.culprit >= 0:
        return Template(
            SIZE + "it arrives at {op}, which multiplies it with what goes into that layer, and that is next to zero.",
            "Nothing to repair where this grows in later steps; else scale what goes in, for example by "
            "`keras.layers.BatchNormalization()` in front of it.",
        )(group)
    if group.verdict.severity == "info" and not is_at_goal(group.suspect):
        return Template(
            SIZE + "the optimizer makes up for that, and moves {them} about as far as the others.",
            "Nothing to repair while it does: optimizers such as Adam divide by the size of the gradient, down to "
            "their `epsilon`.",
        )(group)
    if group.verdict.severity == "info" and is_at_goal(group.suspect):
        return _learned(group)
    if _has_no_layers(group):
        return Template(
            SIZE + "it fades on the way from the loss, most of all at {op} and its like: the quantities there are far "
            "from one.",
            "Bring them to about one: divide what is compared with the target, and the target, by the target's size, "
            "and let the variable hold a multiple of a typical value, `{variable} = typical * multiple`.",
        )(group)
    return Template(
        SIZE + "it fades on the way from the loss, most of all at {op} and its like.",
        'Keep it alive along the way: `activation="relu"` with `kernel_initializer="he_normal"`, '
        "`keras.layers.BatchNormalization()`, or residual connections, `x = x + layer(x)`.",
    )(group)


def _has_no_layers(group: Group) -> bool:
    """Whether nothing but arithmetic leads from the variables to the loss: no layer, no product of matrices."""
    topology, trace, target = group.suspect.topology, group.trace, group.suspect.target
    readers = [reader for variable in group.variables for reader in topology.readers[variable]]
    ways = [topology.gradient(target).from_op(reader) for reader in readers] if target >= 0 else []
    kinds = {trace.ops[op].type for way in ways for op in way}
    return bool(kinds) and not trace.layers and kinds.isdisjoint(PRODUCTS - {"Mul", "MulNoNan"})


def _alone(group: Group) -> bool:
    """Whether the op alone adds nearly all of the growth."""
    shares = course_of(group.suspect).values()
    return min((share.least[0] for share in shares), default=0.0) <= -_SINGLE_DECADES


# One op that alone adds this many orders of magnitude is what there is to change.
_SINGLE_DECADES = 4.0

WRITERS: dict[str, Writer] = {
    "zero_init_by_design": Template(
        SIZE + "{op} multiplies with a variable that began at zero, or next to it, and is learning.",
        "Nothing to repair: as that one grows, so does this gradient.",
    ),
    "zero_init_product": Template(
        ZERO + "{op} multiplies with a variable that is all zeros and gets no gradient either.",
        'Start one of the two with numbers: `initializer="glorot_uniform"`.',
    ),
    "fp16_underflow": Template(
        ZERO + "at {op} it falls below the smallest float16, 6e-8.",
        "Scale the loss: `keras.optimizers.LossScaleOptimizer(optimizer)`, or use `mixed_bfloat16`.",
    ),
    "gradient_cancellation": cancelling,
    "zero_gradient": zero_gradient,
    "vanishing_depth": fading,
    "exploding_recurrence": exploding,
    "normalise_zero_vector": Template(
        SIZE + "{op} divides by the length of a vector that is nearly zero.",
        "Give it a larger epsilon: `tf.math.l2_normalize({x}, axis=-1, epsilon=1e-3)`.",
    ),
}
