"""Words for gradients that arrive and are zero, tiny, huge or not finite."""

from __future__ import annotations

from tb_gradflow.analyse.words.code import Call, bracketed, innermost_call
from tb_gradflow.analyse.words.fields import Template, fields
from tb_gradflow.analyse.words.names import Group, Text, Writer, call_of

_ZERO = "{they_get} a gradient of exactly zero: "
_SIZE = "{they_get} {size}: "


def dead_relu(group: Group) -> Text:
    is_relu = group.op is not None and "Relu" in group.op.type
    why = "{op} is zero, and flat, " if is_relu else "{op} multiplies with the output of a ReLU that is zero "
    return Template(_ZERO + why + "for every input of this step.", _LET_THROUGH)(group)


def where_inactive(group: Group) -> Text:
    names, call = fields(group), call_of(group)
    product = group.op is not None and group.op.type in ("Mul", "MatMul")
    why = "multiplies with something that is not finite" if product else "has no finite derivative"
    x, hidden = _made_safe(call) if call else ("x", "f(safe)")
    return Text(
        f"{names['they_get']} NaN: {names['op']} {why} for some elements, and `tf.where` hides their value but not "
        "their gradient, which becomes 0 * inf.",
        f"Make what goes in safe as well: `safe = tf.where(ok, {x}, 1.0)`, then `tf.where(ok, {hidden}, other)`.",
    )


def _made_safe(call: Call) -> tuple[str, str]:
    """What has to be safe, and the user's expression with that in its place.

    Of `alpha * tf.math.log(x)` it is the argument of the logarithm, of `a / b` the divisor.
    """
    inner = innermost_call(call.text)
    if inner is not None:
        return inner.subject, call.text.replace(inner.text, inner.with_subject("safe"))
    return call.arguments[-1], f"{bracketed(call.arguments[0])} {call.head} safe"


def square_root(group: Group) -> Text:
    """`tf.norm` and `tf.math.reduce_std` end in a square root that has no place for an epsilon: written out."""
    name = ((group.op.api if group.op else None) or "").rpartition(".")[2]
    inside = _UNDER_THE_ROOT.get(name, "{bx}")
    return Template(
        _SIZE + "the derivative of {op} is infinite at zero, and something is zero there.",
        f"Keep away from zero: `{{lib}}.sqrt({inside} + 1e-12)`.",
    )(group)


_UNDER_THE_ROOT = {
    "norm": "tf.reduce_sum(tf.square({x}), axis=-1)",
    "reduce_euclidean_norm": "tf.reduce_sum(tf.square({x}), axis=-1)",
    "reduce_std": "tf.math.reduce_variance({x})",
    "std": "keras.ops.var({x})",
}


def zero_gradient(group: Group) -> Text:
    product = group.op is not None and group.op.type in ("Mul", "MatMul", "BatchMatMulV2", "Einsum", "Conv2D")
    why = "in this step {op} multiplies with zeros" if product else "it is there behind {op}, and zero in front of it"
    return Template(_ZERO + why + ".", "Look at what {op} is given in this step.")(group)


_LET_THROUGH = (
    'Let something through below zero, `activation="leaky_relu"`, lower the learning rate, or start the bias of the '
    "layer at zero."
)
_FROM_LOGITS = "take the loss from the logits, `from_logits=True`"

WRITERS: dict[str, Writer] = {
    "dead_relu": dead_relu,
    "where_inactive_branch": where_inactive,
    "branch_not_taken": Template(
        _ZERO + "in this step {op} did not choose the branch that uses {them}.",
        "Nothing to repair if that depends on the data; look at other steps.",
    ),
    "softmax_single_class": Template(
        _ZERO + "{op} normalises over an axis of length one, where the result is always 1.",
        "Normalise over the axis with several entries, for example `tf.nn.softmax({x}, axis=1)`, or use "
        "`{lib}.sigmoid({x})` for a single one.",
    ),
    "saturation_softmax": Template(
        _ZERO + "{op} is so sure of one class that its slope rounds to zero.",
        "Scale what goes in, `{bx} / 10.0`, or " + _FROM_LOGITS + ".",
    ),
    "saturation_sigmoid": Template(
        _SIZE + "what goes into {op} is so large that its slope is next to nothing.",
        "Scale what goes in, for example by `keras.layers.BatchNormalization()` in front of it, or "
        + _FROM_LOGITS
        + ".",
    ),
    "saturation_quant_range": Template(
        _ZERO + "all values lie inside the range of {op}, and only those outside move it.",
        "Start the range inside the values, or set it from their moving minimum and maximum.",
    ),
    "saturation_clip": Template(
        _ZERO + "{op} limits every value of this step, and a limit has no slope.",
        "Do not clip `{x}` on the way to the loss: " + _FROM_LOGITS + ", or clip gradients, "
        "`keras.optimizers.Adam(clipnorm=1.0)`.",
    ),
    "zero_init_by_design": Template(
        _SIZE + "{op} multiplies with a variable that began at zero, or next to it, and is learning.",
        "Nothing to repair: as that one grows, so does this gradient.",
    ),
    "zero_init_product": Template(
        _ZERO + "{op} multiplies with a variable that is all zeros and gets no gradient either.",
        'Start one of the two with numbers: `initializer="glorot_uniform"`.',
    ),
    "fp16_underflow": Template(
        _ZERO + "at {op} it falls below the smallest float16, 6e-8.",
        "Scale the loss: `keras.optimizers.LossScaleOptimizer(optimizer)`, or use `mixed_bfloat16`.",
    ),
    "degenerate_normalisation": Template(
        _ZERO + "{op} normalises over a single element, and the result is the same whatever comes in.",
        "Use a larger batch, or `keras.layers.LayerNormalization()`.",
    ),
    "normalised_then_summed": Template(
        _SIZE + "the loss sums what {op} made to sum to one, so it is constant.",
        "Compare with targets: `keras.losses.categorical_crossentropy(y, probabilities)`.",
    ),
    "mask_multiplies_to_zero": Template(
        _ZERO + "{op} multiplies what comes from {them} with zeros, a mask or a weight of the loss.",
        "Nothing to repair if these labels are missing in this batch; else check the mask, or the weight of this loss.",
    ),
    "shift_invariant_parameter": Template(
        "{they_have} no influence: what follows {op} takes every offset out again (a normalisation, or a "
        "softmax). What arrives is rounding noise.",
        "Harmless; `use_bias=False` saves the weights.",
    ),
    "gradient_cancellation": Template(
        _SIZE + "several ways lead to the loss, and their gradients cancel at {op}.",
        "Stop one of them: for a score function `log_prob(tf.stop_gradient(sample))`, so that `{variable}` acts "
        "through the density alone.",
    ),
    "zero_gradient": zero_gradient,
    "vanishing_depth": Template(
        _SIZE + "it fades on the way from the loss, most of all at {op} and its like.",
        'Keep it alive along the way: `activation="relu"` with `kernel_initializer="he_normal"`, '
        "`keras.layers.BatchNormalization()`, or residual connections, `x = x + layer(x)`.",
    ),
    "exploding_recurrence": Template(
        _SIZE + "it grows on the way from the loss, most of all at {op} and its like.",
        "Clip it, `keras.optimizers.Adam(clipnorm=1.0)`; scale inputs and targets to about 1; start recurrent weights "
        'with `recurrent_initializer="orthogonal"`.',
    ),
    "normalise_zero_vector": Template(
        _SIZE + "{op} divides by the length of a vector that is nearly zero.",
        "Give it a larger epsilon: `tf.math.l2_normalize({x}, axis=-1, epsilon=1e-3)`.",
    ),
    "sqrt_at_zero": square_root,
    "zero_over_zero": Template(_SIZE + "{op} divides by zero.", "Divide safely: `tf.math.divide_no_nan({x}, total)`."),
    "log_zero": Template(
        _SIZE + "{op} is given zero, where the logarithm is infinite.",
        "Keep away from zero: `{head}({bx} + 1e-7)`, or " + _FROM_LOGITS + ".",
    ),
    "exp_overflow": Template(
        _SIZE + "{op} overflows.",
        "Use the stable form: `tf.nn.softplus(x)` for `log(1 + exp(x))`, "
        "`tf.reduce_logsumexp(x)` for `log(sum(exp(x)))`.",
    ),
    "pow_fraction_at_zero": Template(
        _SIZE + "the derivative of {op} is infinite at zero, and something is zero there.",
        "Keep away from zero: `tf.pow({bx} + 1e-7, p)`.",
    ),
    "acos_at_one": Template(
        _SIZE + "the derivative of {op} is infinite at the edge of its domain.",
        "Stay inside: clip its argument, `tf.clip_by_value({x}, -1 + 1e-6, 1 - 1e-6)`.",
    ),
    "softmax_all_masked": Template(
        _SIZE + "{op} meets a row that is masked out entirely.",
        "Mask with a large negative number, `-1e9`, in the place of `-inf`.",
    ),
    "fp16_overflow": Template(
        _SIZE + "at {op} it exceeds the largest float16, 65504.",
        "Compute this part in float32, `tf.cast({x}, tf.float32)`, or use `mixed_bfloat16`.",
    ),
    "not_finite": Template(
        _SIZE + "the gradient is finite behind {op}, and not in front of it.",
        "Look at what {op} is given in this step.",
    ),
}
