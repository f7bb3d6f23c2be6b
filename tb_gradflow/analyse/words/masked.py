"""Words for masks, gates and selections that make zeros of a gradient."""

from __future__ import annotations

from tb_gradflow.analyse.kinds import LOOPS, SELECTING
from tb_gradflow.analyse.measured import is_empty
from tb_gradflow.analyse.words.fields import ZERO, Template
from tb_gradflow.analyse.words.names import Group, Text, Writer


def masked(group: Group) -> Text:
    if group.suspect.state.status == "connected":
        return _in_part(group)
    op = group.op
    name = f"{op.name} {op.api}".lower() if op is not None else ""
    if op is not None and op.type == "DivNoNan":
        return Template(
            ZERO + "{op} divides by a count of zero: nothing in this batch belongs to {them}.",
            "Nothing to repair if other batches have some; else look at the labels.",
        )(group)
    if op is not None and op.type in LOOPS:
        return Template(
            ZERO + "in this step a mask makes {op} leave out every time step, and what it hands on stays zero.",
            "Look at the mask: `mask_value` of the `Masking` layer, `mask_zero` of the `Embedding`, or batches that "
            "hold nothing but padding.",
        )(group)
    if op is not None and op.type in SELECTING:
        return Template(
            ZERO + "in this step {op} selects nothing of what comes from {them}.",
            "Nothing to repair if other batches, or later steps, have something to select; else look at what {op} is "
            "asked for: a length, an index, a condition.",
        )(group)
    incoming = group.suspect.measured.of_op(group.suspect.target, group.culprit)
    if incoming is not None and is_empty(incoming):
        return Template(
            ZERO + "in this step {op} is given nothing: not one row was selected for it.",
            "Nothing to repair if other batches, or later steps, have rows for {them}.",
        )(group)
    if "dropout" in name:
        return Template(
            ZERO + "in this step {op} has dropped all that comes from {them}.",
            "Lower the rate: `keras.layers.Dropout(0.3)`.",
        )(group)
    if op is not None and any(constant.value == 0 for constant in op.constants):
        fix = "If {names} {is_to} learn, look at what {op} multiplies with: a factor other than 0, or a mask with ones."
        if "compile_loss" in name:
            fix = "If {names} {is_to} learn, give this loss another weight: `loss_weights` in `model.compile`."
        return Template(ZERO + "{op} multiplies what comes from {them} with the constant 0.", fix)(group)
    if "compile_loss" in name:
        return Template(
            ZERO + "{op} multiplies what comes from {them} with zeros: a `sample_weight`, a mask or a loss weight.",
            "Look at `sample_weight`, at `loss_weights` in `model.compile`, and at the masks of the layers.",
        )(group)
    if _leaves_no_loss(group):
        return Template(
            ZERO + "in this step {op} multiplies everything with zeros, and the loss is zero.",
            "Look at the mask that {op} is given: whether it is the right way round, 1 where something counts; or at "
            "the batch, if that holds nothing but padding.",
        )(group)
    return Template(
        ZERO + "in this step {op} multiplies what comes from {them} with zeros, a mask or a gate.",
        "Nothing to repair if other batches, or later steps, let it through; else look at the mask that {op} is given.",
    )(group)


def _leaves_no_loss(group: Group) -> bool:
    """Whether the loss is exactly zero, and no variable that it is made of gets anything else."""
    measured, trace, target = group.suspect.measured, group.trace, group.suspect.target
    asked = {entry.variable for entry in trace.variable_gradients if entry.target == target}
    zero = 0 <= target < len(measured.losses) and measured.losses[target] == 0
    return zero and asked <= set(group.variables)


def _in_part(group: Group) -> Text:
    """The weight itself is masked."""
    gradient = group.suspect.state.gradient
    share = gradient.zero_fraction if gradient is not None else 0.0
    return Template(
        f"{{they_get}} a gradient of exactly zero in {share:.0%} of the elements: in this step {{op}} multiplies "
        "{them} with a mask. What the optimizer remembers of earlier steps (Adam, momentum), and a weight decay, move "
        "these elements all the same.",
        "Nothing to repair if that is meant. If they are to stand still in such steps: an optimizer without memory, "
        "`keras.optimizers.SGD()`, or put them back after each step, "
        "`{variable}.assign(tf.where(mask > 0, {variable}, before))`.",
    )(group)


WRITERS: dict[str, Writer] = {"mask_multiplies_to_zero": masked}
