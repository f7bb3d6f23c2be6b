"""Words for gradients that arrive and are zero, tiny or huge."""

from __future__ import annotations

from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, Writer

_ZERO = "{they_get} a gradient of exactly zero: "
_SIZE = "{they_get} {size}: "


def dead_relu(group: Group) -> Text:
    is_relu = group.op is not None and "Relu" in group.op.type
    why = "{op} is zero, and flat, " if is_relu else "{op} multiplies with the output of a ReLU that is zero "
    return Template(_ZERO + why + "for every input of this step.", _LET_THROUGH)(group)


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
    "branch_not_taken": Template(
        _SIZE + "in this step {op} did not choose the branch that uses {them}.",
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
}
