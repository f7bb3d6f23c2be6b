"""A mask computed from data makes the gradient zero."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.bodies import first_of_loop, keeps_first_state, loop_in, unrecorded_before
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import FLAT_AT_ZERO, PRODUCTS
from tb_gradflow.analyse.graph.op_sets import ADDITIONS, CHOICES, COPIES, LOOPS, ROUTING, SELECTING
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.step.measured import is_empty
from tb_gradflow.analyse.step.movement import Mask, Moved, mask_in, movement_of, why_moved
from tb_gradflow.analyse.words.code import is_simple
from tb_gradflow.analyse.words.fields import ZERO, Template, share_of_zeros
from tb_gradflow.analyse.words.names import Group, Text, call_of, short


def masked(suspect: Suspect) -> Verdict | None:
    """A mask or weight computed from data is zero wherever this variable has an effect; or a value is divided by a
    count of zero."""
    mask = suspect.culprit
    if suspect.op.type in FLAT_AT_ZERO and suspect.producer >= 0:
        # The square of a value that the mask has made zero is flat there.
        mask = suspect.producer
    if suspect.topology.has_factor_of_data(mask):
        expected = _is_part(suspect) or _is_blended(suspect, mask) or _is_scheduled(suspect, mask)
        return Verdict("mask_multiplies_to_zero", "info" if expected else "warning", mask)
    if suspect.op.type in PRODUCTS and _is_part(suspect):
        return Verdict("mask_multiplies_to_zero", "info")
    if suspect.op.type == "DivNoNan":
        return Verdict("mask_multiplies_to_zero", "info")
    return None


def masked_in_part(suspect: Suspect) -> Verdict | None:
    """The weight itself is multiplied by a mask, which makes a part of its gradient zero, and the optimizer moves that
    part anyway, or its update was not recorded. Information: this is a common way to keep parts of a weight fixed."""
    topology, state = suspect.topology, suspect.state
    if state.gradient is None or not 0 < state.gradient.zero_fraction < 1:
        return None
    moved = movement_of(suspect.measured, state.variable)
    if moved is not None and not moved.moved:
        return None
    shape = topology.trace.variables[state.variable].shape
    readers = topology.readers[state.variable]
    copies = topology.ahead(readers, COPIES)
    for op in copies:
        each, arriving = topology.trace.ops[op], suspect.measured.of_op(suspect.target, op)
        if (
            (
                _is_masked_by_data(topology, op)
                or _is_masked_by_frozen(topology, op)
                # A choice between two values is not meant to keep anything fixed, unless an optimizer was seen to move
                # the variable. A factor that is not data may be a variable that no model owns, or a number.
                or (moved is not None and (_is_chosen(topology, op) or topology.has_factor_of_data(op)))
            )
            and each.outputs[0].shape == shape
            and arriving is not None
            and arriving.zero_fraction < state.gradient.zero_fraction
        ):
            return Verdict("mask_multiplies_to_zero", "info", op)
    return None


def masked_by_hand(suspect: Suspect) -> Verdict | None:
    """The gradient that the optimizer is given has more zeros than the tape's, and the optimizer moves those elements
    anyway. Information, as above."""
    moved, gradient = movement_of(suspect.measured, suspect.state.variable), suspect.state.gradient
    if moved is None or gradient is None or not moved.moved:
        return None
    masked = moved.zeros > gradient.zero_fraction * moved.size + 0.5
    return Verdict("mask_multiplies_to_zero", "info", NO_OP) if masked else None


def _is_masked_by_data(topology: Topology, op: int) -> bool:
    return topology.has_factor_of_data(op) and bool(topology.trace.ops[op].data)


def _is_chosen(topology: Topology, op: int) -> bool:
    """Whether the op is a `tf.where` whose condition depends on no trainable variable."""
    if topology.trace.ops[op].type not in ("Select", "SelectV2"):
        return False
    # A condition that depends on no variable is not among the inputs.
    conditions = [edge.op for edge in topology.trace.ops[op].inputs if edge.input == 0]
    behind = {place for each in conditions for place in topology.made_by(each) | {each}}
    reads = {each for place in behind if (each := topology.trace.ops[place].reads) is not None}
    return not any(topology.trace.variables[each].trainable for each in reads)


def _is_masked_by_frozen(topology: Topology, op: int) -> bool:
    """Whether the op is a product with a non-trainable variable, or with a value computed only from such variables."""
    if topology.trace.ops[op].type not in ("Mul", "MulNoNan"):
        return False
    frozen = 0
    for edge in topology.trace.ops[op].inputs:
        behind = topology.made_by(edge.op) | {edge.op} if edge.op >= 0 else frozenset()
        reads = {each for place in behind if (each := topology.trace.ops[place].reads) is not None}
        frozen += bool(reads) and not any(topology.trace.variables[each].trainable for each in reads)
    return frozen == 1


def _is_blended(suspect: Suspect, product: int) -> bool:
    """Whether another product with data is added to it, element by element: a blend of two paths, which is a `tf.where`
    written with arithmetic. Terms of a loss do not count."""
    ops, topology = suspect.topology.trace.ops, suspect.topology
    return any(
        ops[user].type in ADDITIONS
        and ops[user].outputs[0].shape != ()
        and any(edge.op not in (product, -1) and topology.has_factor_of_data(edge.op) for edge in ops[user].inputs)
        for user in topology.onward(product)
    )


def _is_scheduled(suspect: Suspect, product: int) -> bool:
    """Whether a whole term of the loss is multiplied by a number that is not constant, next to terms with a gradient: a
    schedule adds it later, or has removed it."""
    term = suspect.topology.trace.ops[product]
    if term.outputs[0].shape != () or term.constants:
        return False
    asked = {entry.variable for entry in suspect.topology.trace.variable_gradients if entry.target == suspect.target}
    return any(suspect.measured.learns(variable) for variable in asked)


def _is_part(suspect: Suspect) -> bool:
    """Whether the masked part belongs to a tensor whose other parts do get a gradient: some labels are missing, others
    are not."""
    behind = suspect.measured.once(("parts", suspect.target), lambda: _behind_parts(suspect))
    return suspect.culprit in behind


def _behind_parts(suspect: Suspect) -> set[int]:
    """The ops after a join or a slice in which some elements get a gradient and others get zero."""
    topology, measured = suspect.topology, suspect.measured
    routes = [op for op, each in enumerate(topology.trace.ops) if each.type in ROUTING]
    gradients = [(op, measured.of_op(suspect.target, op)) for op in routes]
    parts = [op for op, gradient in gradients if gradient is not None and 0 < gradient.zero_fraction < 1]
    return topology.reached_from({user for op in parts for user, _ in topology.consumers[op]})


def nothing_selected(suspect: Suspect) -> Verdict | None:
    """No element was selected: the result is the mean or the sum of an empty tensor. The evidence is an empty gradient
    at the selection.
    """
    topology = suspect.topology
    incoming = suspect.measured.of_op(suspect.target, suspect.culprit)
    if incoming is None or not is_empty(incoming):
        return None
    for op in topology.gradient(suspect.target).from_op(suspect.culprit):
        after = suspect.measured.of_op(suspect.target, op)
        if after is not None and not is_empty(after):
            if suspect.measured.loss_is_finite(suspect.target):
                break
            return Verdict("zero_over_zero", "error", op)
    return Verdict("mask_multiplies_to_zero", "info")


def loop_skipped(suspect: Suspect) -> Verdict | None:
    """A recurrent layer whose mask leaves out every time step: its output is its initial state, zeros."""
    loop = loop_in(suspect, unrecorded_before(suspect))
    skipped = loop >= 0 and keeps_first_state(suspect, loop)
    return Verdict("mask_multiplies_to_zero", "warning", first_of_loop(suspect, loop)) if skipped else None


def dropped(suspect: Suspect) -> Verdict | None:
    """Dropout has dropped everything."""
    drops = suspect.op.type in (*CHOICES, "Mul") and "dropout" in f"{suspect.op.name} {suspect.op.api}".lower()
    return Verdict("mask_multiplies_to_zero", "warning") if drops else None


def message_and_fix(group: Group) -> Text:
    if group.suspect.state.status == "connected":
        return _in_part(group)
    op = group.op
    name = f"{op.name} {op.api}".lower() if op is not None else ""
    if op is not None and op.type == "DivNoNan":
        return Template(
            ZERO + "{op} divides by a count of zero: nothing in this batch belongs to {them}.",
            "Nothing to fix if other batches contain some; otherwise, check the labels.",
        )(group)
    if op is not None and op.type in LOOPS:
        return Template(
            ZERO + "in this step a mask makes {op} skip every time step, and its output stays zero.",
            "Check the mask: `mask_value` of the `Masking` layer, `mask_zero` of the `Embedding`, and whether the "
            "batch contains only padding.",
        )(group)
    if op is not None and op.type in SELECTING:
        return Template(
            ZERO + "in this step {op} selects none of the values computed from {them}.",
            "Nothing to fix if other batches, or later steps, have something to select; otherwise, check the length, "
            "index or condition given to {op}.",
        )(group)
    incoming = group.suspect.measured.of_op(group.suspect.target, group.culprit)
    if incoming is not None and is_empty(incoming):
        return Template(
            ZERO + "in this step {op} gets an empty tensor: no row was selected for it.",
            "Nothing to fix if other batches, or later steps, have rows for {them}.",
        )(group)
    if "dropout" in name:
        return Template(
            ZERO + "in this step {op} dropped all values computed from {them}.",
            "Lower the dropout rate: `keras.layers.Dropout(0.3)`.",
        )(group)
    if op is not None and any(constant.value == 0 for constant in op.constants):
        fix = "If {names} should be trained, give {op} a factor other than 0, or a mask that contains ones."
        if "compile_loss" in name or _is_loss_of_keras_2(group):
            fix = "If {names} should be trained, give this loss another weight: `loss_weights` in `model.compile`."
        factor = _zero_in(group)
        zero = f"`{factor}`, which is constant and 0 everywhere" if factor else "the constant 0"
        return Template(ZERO + "{op} multiplies the values computed from {them} by " + zero + ".", fix)(group)
    if "compile_loss" in name:
        return Template(
            ZERO + "{op} multiplies the values computed from {them} by zeros: a `sample_weight`, a mask or a loss "
            "weight.",
            "Check `sample_weight`, `loss_weights` in `model.compile`, and the masks of the layers.",
        )(group)
    if _leaves_no_loss(group):
        return Template(
            ZERO + "in this step {op} multiplies everything by zeros, and the loss is zero.",
            "Check that the mask given to {op} is not inverted: it must be 1 where a value counts. Or check whether "
            "the batch contains only padding.",
        )(group)
    return Template(
        ZERO + "in this step {op} multiplies the values computed from {them} by zeros, from a mask or a gate.",
        "Nothing to fix if other batches, or later steps, let them through; otherwise, check the mask given to {op}.",
    )(group)


def _is_loss_of_keras_2(group: Group) -> bool:
    """Whether Keras 2 itself, no line of the program, multiplies one of several losses by its weight."""
    made_by = [group.trace.ops[edge.op].name for edge in group.op.inputs if edge.op >= 0] if group.op else []
    is_own = group.op is not None and group.op.source is None and "/" not in group.op.name
    return is_own and len(made_by) == 1 and "/weighted_loss/" in made_by[0]


def _zero_in(group: Group) -> str:
    """The factor in the user's product that is zero, as a name; empty for a number."""
    call, op = call_of(group), group.op
    sides = call.arguments if call is not None and call.is_operator else ()
    slots = [constant.input for constant in op.constants if constant.value == 0] if op is not None else []
    factor = sides[slots[0]] if slots and slots[0] < len(sides) else ""
    return factor if is_simple(factor) and not factor[0].isdigit() else ""


def _leaves_no_loss(group: Group) -> bool:
    """Whether the loss is exactly zero, and every variable that it depends on gets a gradient of zero."""
    measured, trace, target = group.suspect.measured, group.trace, group.suspect.target
    asked = {entry.variable for entry in trace.variable_gradients if entry.target == target}
    zero = 0 <= target < len(measured.losses) and measured.losses[target] == 0
    return zero and asked <= set(group.variables)


def _in_part(group: Group) -> Text:
    """The weight itself is masked, or the gradient that is applied to it."""
    moved = movement_of(group.suspect.measured, group.variables[0])
    if moved is None:
        share = f"{share_of_zeros(group):.0%} of the elements"
        return Template(
            f"{{they_get}} a gradient of exactly zero in {share}: in this step {{op}} masks "
            "{them}. Whether an optimizer still moves these elements was not recorded: Adam, momentum and weight "
            "decay do, plain SGD does not.",
            "Nothing to fix if this is intended. " + _held_still(group, None),
        )(group)
    why = "in this step {op} masks {them}"
    if group.verdict.culprit == NO_OP:
        why = "the gradient was set to zero there between the tape and the optimizer"
    seen = [each for place in group.variables if (each := movement_of(group.suspect.measured, place)) is not None]
    count, zeros, size = (sum(getattr(each, name) for each in seen) for name in ("moved", "zeros", "size"))
    told = f"Still, {count} of these {zeros} elements move, because {why_moved(moved)}."
    return Template(
        f"{{they_get}} a gradient of exactly zero in {zeros / size:.0%} of the elements: {why}. {told}",
        "Nothing to fix if this is intended. " + _held_still(group, moved),
    )(group)


def _held_still(group: Group, moved: Moved | None) -> str:
    """How to keep masked elements fixed, with the names in the user's lines."""
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
            f"To keep these elements fixed, set the state that {kind} keeps for them to zero before each update, or "
            f"use plain gradient descent, which keeps no state:\n{slots}    session.run(slot.assign(slot * "
            f"{mask.factor}), feed_dict)"
        )
    put_back = (
        f"before = tf.identity({mask.variable})\n{call}\n"
        f"{mask.variable}.assign(tf.where({mask.kept}, {mask.variable}, before))"
    )
    if (moved is not None and not moved.by_memory_alone) or _has_like(group):
        return f"To keep these elements fixed, restore their values after each update:\n{put_back}"
    return (
        f"To keep these elements fixed, restore their values after each update; or, before each update, set the state "
        f"that {kind} keeps for them to zero (the last three lines); or use plain SGD, which keeps no "
        f"state:\n{put_back}\n\n{slots}    slot.assign(slot * {mask.factor})"
    )


_CALL = "optimizer.apply_gradients(zip(gradients, variables))"


def _has_like(group: Group) -> bool:
    """Whether another trainable variable has the same shape: the optimizer's state of the two cannot then be
    distinguished by shape."""
    own = group.trace.variables[group.variables[0]]
    return any(each.trainable and each.shape == own.shape and each is not own for each in group.trace.variables)


CAUSE = Cause(
    name="mask_multiplies_to_zero",
    meaning="the gradient becomes zero at a product with data, at a dropout, or at a selection of no elements; at a "
    "product with a value that such a mask has made zero; in a recurrent layer that has a mask and whose inputs are "
    "not large; or, before such a layer, where a slice of the tensor is taken. Or the weight itself is multiplied by a "
    "mask of data, and part of its gradient is zero",
    severity="warning; info for a slice, a part of a weight, a term of the loss whose weight is not constant, or an "
    "empty selection",
    fix="check the mask",
    text=message_and_fix,
)
