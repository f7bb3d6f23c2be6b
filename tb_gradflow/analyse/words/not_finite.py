"""Words for gradients, losses, weights and batches that are NaN or infinite."""

from __future__ import annotations

import math

from tb_gradflow.analyse.evidence.signs import vanishing_exponential
from tb_gradflow.analyse.graph.op_sets import constant_of, is_without_elements
from tb_gradflow.analyse.words.code import Call, bracketed, fractional_power_on, innermost_call
from tb_gradflow.analyse.words.cut_at_zero import of_relu
from tb_gradflow.analyse.words.fields import Template, fields
from tb_gradflow.analyse.words.logarithms import BROKEN, is_undefined, logarithm, logsumexp
from tb_gradflow.analyse.words.names import Group, Text, Writer, call_of, called, namespace, place_of, source_of
from tb_gradflow.analyse.words.steep import less_steep, made_large

_NEAR = 6
_LARGEST_HALF = 65504.0


def square_root(group: Group) -> Text:
    """`tf.norm` and `tf.math.reduce_std` end in a square root that has no place for an epsilon: written out."""
    name = ((group.op.api if group.op else None) or "").rpartition(".")[2]
    inside = _under_the_root(group, name)
    if inside is None and is_undefined(group):
        return Template(
            BROKEN + "{op} is given something negative, where there is no square root.",
            "Keep it above zero: `{lib}.sqrt({lib}.maximum({x}, 1e-12))`.",
        )(group)
    return Template(
        BROKEN + "the derivative of {op} is infinite at zero, and something is zero there.",
        "Keep away from zero: `{lib}.sqrt(" + (inside or "{bx}") + " + 1e-12)`.",
    )(group)


def _under_the_root(group: Group, name: str) -> str | None:
    """What a norm or a standard deviation is the root of, along the user's own axis; null for other functions."""
    call, lib = call_of(group), namespace(group)
    kept = [each for each in (call.arguments[1:] if call else ()) if each.startswith(("axis=", "keepdims="))]
    if call is not None and name in _AXIS_SECOND and len(call.arguments) > 1 and "=" not in call.arguments[1]:
        kept = [f"axis={call.arguments[1]}", *kept]
    x, axes = call.subject if call else "x", "".join(f", {each}" for each in kept)
    total = "keras.ops.sum(keras.ops.square" if lib == "keras.ops" else "tf.reduce_sum(tf.square"
    if name in ("norm", "reduce_euclidean_norm"):
        return f"{total}({x}){axes})"
    variance = "keras.ops.var" if lib == "keras.ops" else "tf.math.reduce_variance"
    return f"{variance}({x}{axes})" if name in ("reduce_std", "std") else None


_AXIS_SECOND = ("reduce_euclidean_norm", "reduce_std", "std")


def _named(group: Group, op: int) -> str:
    return called(group.trace, op) + place_of(group.trace, op)


def power(group: Group) -> Text:
    if is_undefined(group):
        return Template(
            BROKEN + "{op} is given something negative, which has no such power.",
            f"Keep it above zero: `{_raised(group, 'tf.maximum({x}, 1e-7)')}`.",
        )(group)
    if group.op is not None and (group.op.api or "**").rpartition(".")[2] not in _POWERS:
        return Template(
            BROKEN + "inside of {op} a zero is raised to a fraction of a power, whose derivative is infinite there.",
            _WITHOUT_POWER.get(group.op.api or "", "Write {fn} out, and add `1e-7` to what is raised to the power."),
        )(group)
    return Template(
        BROKEN + "the derivative of {op} is infinite at zero, and something is zero there.",
        f"Keep away from zero: `{_raised(group, '{bx} + 1e-7')}`.",
    )(group)


_POWERS = ("**", "pow", "power", "norm")

_WITHOUT_POWER = {
    "tf.image.ssim_multiscale": "Where both images have opposite contrast it takes zero for what is below. Begin "
    "with `tf.image.ssim`, which raises nothing to a power, or with a mean error, until the images are alike.",
}


def _raised(group: Group, base: str) -> str:
    """The user's power of another base: of several on their line, one whose exponent is no whole number."""
    call = call_of(group)
    if call is None or group.source is None:
        return f"tf.pow({base.format_map(fields(group))}, p)"
    call = fractional_power_on(group.source.code, call)
    return call.with_subject(base.format_map({"x": call.subject, "bx": bracketed(call.subject)}))


def division(group: Group) -> Text:
    if group.op is not None and group.op.type == "Mean":
        emptied = _emptied(group)
        if emptied >= 0:
            return _of_no_elements(group, emptied)
        return Template(
            BROKEN + "{op} averages nothing: not one element was left in this step.",
            "Let an empty selection count as zero: `tf.math.divide_no_nan(tf.reduce_sum({x}), "
            "tf.cast(tf.size({x}), tf.float32))`.",
        )(group)
    if group.op is not None and group.op.type in _ANGLES:
        why, fix = _ANGLES[group.op.type]
        return Template(BROKEN + why, fix)(group)
    divisor = next((edge.op for edge in group.op.inputs if edge.input == 1), -1) if group.op is not None else -1
    vanished = vanishing_exponential(group.trace, divisor)
    if vanished >= 0:
        return Template(
            BROKEN + "{op} divides by zero: of numbers far below zero " + _named(group, vanished) + " makes nothing "
            "but zeros.",
            f"Stay with the logarithms: `{logsumexp(group)}(log_terms)` for a sum of exponentials, and a difference "
            "where {op} divides.",
        )(group)
    call = call_of(group)
    over = ", ".join(call.arguments[:2]) if call and call.head == "/" else "total, count"
    return Template(BROKEN + "{op} divides zero by zero.", f"Divide safely: `tf.math.divide_no_nan({over})`.")(group)


def _emptied(group: Group) -> int:
    """The op in front that makes a tensor without elements of some that have any, where shapes tell; -1 if none."""
    ops = group.trace.ops
    for op in group.suspect.topology.ancestors(group.culprit):
        shape = ops[op].outputs[0].shape if ops[op].outputs else None
        if shape and 0 in shape and not any(is_without_elements(group.trace, edge) for edge in ops[op].inputs):
            return op
    return -1


def _of_no_elements(group: Group, emptied: int) -> Text:
    shape, source = group.trace.ops[emptied].outputs[0].shape, source_of(group.trace, emptied)
    code = f"`{source.code}`" if source is not None and source.code else "it"
    said = Template(BROKEN + "{op} averages nothing: ", "")(group).message
    return Text(
        f"{said}what {_named(group, emptied)} makes has the shape {shape}, which is no element at all.",
        f"Mend {code}: it takes none of the elements that it is given, and the mean of nothing is NaN.",
    )


_ANGLES = {
    "Angle": (
        "{op} is given 0 + 0j, which has no angle: its derivative divides zero by zero there.",
        "Leave zeros out: `ok = tf.abs({x}) > 0`, then `{head}(tf.where(ok, {x}, tf.ones_like({x})))`.",
    ),
    "Atan2": (
        "{op} is given two zeros, which have no angle: its derivative divides zero by zero there.",
        "Leave such points out: make one of both 1 where both are zero, `x = tf.where((x == 0) & (y == 0), 1.0, x)`.",
    ),
}


# What comes out is squared after that, and comes back as a factor of its gradient: that has to be a number still.
_EXPONENT = 20.0


def exponential(group: Group) -> Text:
    """The stable function that does what is done with the exponential by hand."""
    fix = _stable_form(group)
    if group.op is not None and group.op.type in ("Cosh", "Sinh"):
        clip = "keras.ops.clip" if namespace(group) == "keras.ops" else "tf.clip_by_value"
        how = f"Scale what goes in, or clip it: `{{head}}({clip}({{x}}, -{_EXPONENT}, {_EXPONENT}))`."
        how = f"Write its logarithm in the stable form: `{fix}`." if fix else how
        return Template(BROKEN + "{op} overflows: beyond 89 on either side it is infinite.", how)(group)
    kept = f"Keep the exponent in range: `{{head}}({{lib}}.minimum({{x}}, {_EXPONENT}))`; or scale what goes in."
    how = f"Use the stable form: `{fix}`." if fix else kept
    steep = ""
    if factor := made_large(group):
        how += f" {less_steep(factor)}."
        steep = f" {factor[0].upper()}{factor[1:]}: a step that steep has no slope either."
    incoming = group.suspect.measured.of_op(group.suspect.target, group.culprit)
    if incoming is not None and not (incoming.nan_count or incoming.inf_count) and incoming.max_abs > _LARGE_GRADIENT:
        why = f"{{op}} is so large that its derivative overflows, multiplied with a gradient of {incoming.max_abs:.0e}."
        return Template(BROKEN + why, how)(group)
    return Template(BROKEN + "{op} overflows: above 88 it is infinite." + steep, how)(group)


# Of an exponential that is infinite itself, what a sum or a quotient hands back is of about one.
_LARGE_GRADIENT = 1e6


def _stable_form(group: Group) -> str:
    """Told by what follows the exponential: `log(1 + e)`, `log(sum(e))`, `e / sum(e)`, `e / (1 + e)`; `log(cosh)`."""
    topology, trace, keras = group.suspect.topology, group.trace, namespace(group) == "keras.ops"
    neural = "keras.ops" if keras else "tf.nn"
    with_one = summed = False
    queue = [(user, 1) for user in topology.onward(group.culprit)] if group.culprit >= 0 else []
    if group.op is not None and group.op.type in ("Cosh", "Sinh"):
        logarithm_of_it = group.op.type == "Cosh" and any(trace.ops[user].type == "Log" for user, _ in queue)
        return f"{{bx}} + {neural}.softplus(-2.0 * {{bx}}) - {math.log(2):.6f}" if logarithm_of_it else ""
    for op, steps in queue:  # grows while it is walked
        kind = trace.ops[op].type
        with_one = with_one or (kind in _ADDITIONS and 1.0 in (constant_of(trace.ops[op], side) for side in (0, 1)))
        summed = summed or kind == "Sum"
        if kind == "Log1p" or (kind == "Log" and with_one):
            return f"{neural}.softplus({{x}})"
        if kind == "Log" and summed:
            return f"{logsumexp(group)}({{x}}, axis=-1)"
        if kind in ("RealDiv", "Reciprocal") and (summed or with_one):
            turned = constant_of(trace.ops[op], 0) is not None and not summed
            return f"{neural}.{'softmax' if summed else 'sigmoid'}({'-{bx}' if turned else '{x}'})"
        if steps < _NEAR and kind in _HANDING_ON:
            queue.extend((user, steps + 1) for user in topology.onward(op))
    return ""


_ADDITIONS = ("AddV2", "Add")
_HANDING_ON = (*_ADDITIONS, "Sum", "Reshape", "Mul", "ExpandDims", "Squeeze", "Cast", "Identity")


def decomposition(group: Group) -> Text:
    kind = group.op.type if group.op else ""
    if kind in ("SelfAdjointEigV2", "Svd", "Eig"):
        return Template(
            BROKEN + "{op} meets values that are equal, and its derivative divides by their differences.",
            "Train on the values alone, or pull them apart first: "
            "`{bx} + tf.linalg.diag(1e-3 * tf.range(n, dtype=tf.float32))`.",
        )(group)
    return Template(
        BROKEN + "{op} is given a matrix that is singular, or nearly so, and has no inverse.",
        "Move it away from singular: `{head}({bx} + 1e-4 * tf.eye(tf.shape({x})[-1]))`.",
    )(group)


def edge_of_domain(group: Group) -> Text:
    """Whoever clips already clips to the edge itself, which is too far."""
    x = fields(group)["x"]
    if group.op is not None and group.op.type == "Acosh":
        return Template(
            BROKEN + "the derivative of {op} is infinite at one, where its domain begins.",
            "Stay inside: `{head}({lib}.maximum({x}, 1.0 + 1e-6))`.",
        )(group)
    inner = innermost_call(x)
    x = inner.subject if inner is not None and "clip" in inner.head else x
    return Template(
        BROKEN + "the derivative of {op} is infinite at the edge of its domain.",
        f"Stay inside: clip its argument, `tf.clip_by_value({x}, -1 + 1e-6, 1 - 1e-6)`.",
    )(group)


def overflow(group: Group) -> Text:
    beyond = [each.value for each in group.op.constants if abs(each.value) > _LARGEST_HALF] if group.op else []
    if beyond and group.op is not None and group.op.type == "Mul":
        return Template(
            BROKEN
            + f"{{op}} multiplies with {beyond[0]:.3g}, which is infinite in float16, and zero times infinity is "
            "NaN.",
            "Stay above the smallest float16, -65504: a mask needs no more than `-6e4`; or add it in float32.",
        )(group)
    if group.verdict.severity == "info":
        return Template(
            BROKEN
            + "at {op} it exceeds the largest float16, 65504, with the scale that the loss has in this step, and "
            "the optimizer has left the step out.",
            "Nothing, while it happens now and then: the scale falls after each such step. If it goes on, compute this "
            "part in float32, `tf.cast({x}, tf.float32)`, or use `mixed_bfloat16`.",
        )(group)
    return Template(
        BROKEN + "at {op} it exceeds the largest float16, 65504.",
        "Compute this part in float32, `tf.cast({x}, tf.float32)`, or use `mixed_bfloat16`.",
    )(group)


def unexplained(group: Group) -> Text:
    if group.suspect.producer < 0:
        return Template(
            BROKEN + "the gradients are finite all the way, so a value broke where no gradient shows it.",
            "Look for it with `tf.debugging.enable_check_numerics()`.",
        )(group)
    x = _predicted(call_of(group)) or "{x}"
    return Template(
        BROKEN + "the gradient is finite behind {op}, and not in front of it.",
        f'Look at what goes into {{op}} in this step: `tf.debugging.check_numerics({x}, "{{kind}}")`.',
    )(group)


def _predicted(call: Call | None) -> str | None:
    """Of a loss, what the model says; the labels stand first and are not to blame. Null for all else."""
    if call is None or not any(word in call.head for word in ("entropy", "losses.")):
        return None
    return call.argument(len(call.arguments), "logits") or call.argument(1, "y_pred")


WRITERS: dict[str, Writer] = {
    "sqrt_at_zero": square_root,
    "zero_over_zero": of_relu(division),
    "log_zero": of_relu(logarithm),
    "exp_overflow": exponential,
    "pow_fraction_at_zero": power,
    "acos_at_one": edge_of_domain,
    "softmax_all_masked": Template(
        BROKEN + "{op} meets a row that is masked out entirely.",
        "Mask with a large negative number, `-1e9`, in the place of `-inf`.",
    ),
    "degenerate_decomposition": decomposition,
    "fp16_overflow": overflow,
    "not_finite": unexplained,
}
