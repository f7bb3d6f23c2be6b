"""Words for masks, gates and selections that make zeros of a gradient."""

from __future__ import annotations

import math

from tb_gradflow.analyse.evidence.suspects import NO_OP
from tb_gradflow.analyse.graph.op_sets import LOOPS, SELECTING
from tb_gradflow.analyse.step.measured import is_empty
from tb_gradflow.analyse.step.movement import Mask, Moved, mask_in, movement_of, why_moved
from tb_gradflow.analyse.words.fields import ZERO, Template
from tb_gradflow.analyse.words.names import Group, Text, Writer, short


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
    """The weight itself is masked, or the gradient that is applied to it."""
    moved = movement_of(group.suspect.measured, group.variables[0])
    if moved is None:
        share = f"{_share(group):.0%} of the elements"
        return Template(
            f"{{they_get}} a gradient of exactly zero in {share}: in this step {{op}} masks "
            "{them}. Whether an optimizer moves these elements all the same was not seen: Adam, momentum "
            "and a weight decay do, plain SGD does not.",
            "Nothing to repair if that is meant. " + _held_still(group, None),
        )(group)
    why = "in this step {op} masks {them}"
    if group.verdict.culprit == NO_OP:
        why = "the gradient that the optimizer is given was made zero there after the tape had taken it"
    seen = [each for place in group.variables if (each := movement_of(group.suspect.measured, place)) is not None]
    count, zeros, size = (sum(getattr(each, name) for each in seen) for name in ("moved", "zeros", "size"))
    told = f"It moves {count} of these {zeros} elements all the same, because {why_moved(moved)}."
    return Template(
        f"{{they_get}} a gradient of exactly zero in {zeros / size:.0%} of the elements: {why}. {told}",
        "Nothing to repair if that is meant. " + _held_still(group, moved),
    )(group)


def _share(group: Group) -> float:
    """Of the elements of all variables of the group, how many get a gradient of exactly zero."""
    sizes = [math.prod(group.trace.variables[state.variable].shape or ()) for state in group.states]
    zeros = [state.gradient.zero_fraction if state.gradient is not None else 0.0 for state in group.states]
    return sum(size * zero for size, zero in zip(sizes, zeros, strict=True)) / max(sum(sizes), 1)


def _held_still(group: Group, moved: Moved | None) -> str:
    """How to keep masked elements where they are, with the names of the user's lines."""
    own, optimizer = short(group), moved.optimizer if moved is not None else None
    mask = mask_in(group.source.code if group.source is not None else "", own) or Mask(own, "mask != 0", "mask")
    call = optimizer.call if optimizer is not None and optimizer.call else _CALL
    name, kind = call.rpartition(".apply")[0], optimizer.type if optimizer is not None else "Adam"
    slots = (
        f"for name in {name}.get_slot_names():\n    slot = {name}.get_slot({mask.variable}, name)\n"
        if optimizer is not None and optimizer.has_slots
        else f"for slot in {name}.variables:\n    if slot.shape == {mask.variable}.shape:\n    "
    )
    if group.trace.targets[group.suspect.target].automatic is None:  # a graph of TensorFlow 1, where no tape is
        return (
            f"To hold these elements still, set to zero what {kind} remembers of them in front of each update, or "
            f"use plain gradient descent, which remembers nothing:\n{slots}"
            f"    session.run(slot.assign(slot * {mask.factor}), feed_dict)"
        )
    put_back = (
        f"before = tf.identity({mask.variable})\n{call}\n"
        f"{mask.variable}.assign(tf.where({mask.kept}, {mask.variable}, before))"
    )
    if (moved is not None and not moved.by_memory_alone) or _has_like(group):
        return f"To hold these elements still, put their values back after each update:\n{put_back}"
    return (
        "To hold these elements still, put their values back after each update; or set to zero what "
        f"{kind} remembers of them in front of it, the last three lines; or use plain SGD, which remembers "
        f"nothing:\n{put_back}\n\n{slots}    slot.assign(slot * {mask.factor})"
    )


_CALL = "optimizer.apply_gradients(zip(gradients, variables))"


def _has_like(group: Group) -> bool:
    """Whether another trainable variable has the same shape: by that alone what is remembered of each is not told
    apart."""
    own = group.trace.variables[group.variables[0]]
    return any(each.trainable and each.shape == own.shape and each is not own for each in group.trace.variables)


WRITERS: dict[str, Writer] = {"mask_multiplies_to_zero": masked}
