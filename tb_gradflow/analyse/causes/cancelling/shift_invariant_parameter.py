"""An offset, or a factor, that a later op cancels."""

from __future__ import annotations

from collections.abc import Sequence

from tb_gradflow.analyse.causes.cancelling.differences import difference_behind
from tb_gradflow.analyse.causes.cancelling.sums import NOISE, SCORING_STEPS, cancelling_users, where_ways_join
from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.gradient_sizes import (
    SAME_VALUE,
    SINGLE_DECADES,
    element_count,
    just_behind,
    read_at,
    steepest,
)
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.op_sets import OFFSETS, ROWS, SHIFTS, SOFTMAX
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, layer_of, quoted

_KEEPING = frozenset({"Reshape", "Squeeze", "ExpandDims", "Cast", "Identity", "BroadcastTo"})

_MARGINS = _KEEPING | OFFSETS | {"Sub", "Neg", "Relu", "Maximum", "Mean", "Sum"}

_LINEAR = _KEEPING | OFFSETS | {"Sub", "MatMul"}

_SCORING = frozenset(
    {"Mul", "RealDiv", "Einsum", "BatchMatMulV2", "BatchMatMulV3", "MatMul", "Transpose", "AddV2", "Reshape", "Cast"}
    | {"Identity", "Sub"}
)


def rule(suspect: Suspect) -> Verdict | None:
    """An offset that later ops cancel: before a batch normalisation, or in an attention's keys."""
    state, topology = suspect.state, suspect.topology
    if state.gradient is None:
        return None
    for reader in topology.readers[state.variable]:
        shift = _first_other_than(suspect, reader, _KEEPING)
        behind = suspect.measured.of_op(state.target, shift) if shift >= 0 else None
        if (
            behind is None
            or not behind.norm
            or suspect.type_of(shift) not in OFFSETS
            or state.gradient.norm > NOISE * behind.norm
        ):
            continue
        if takes_out(suspect, shift) >= 0:
            return Verdict("shift_invariant_parameter", "info", shift)
    return None


def takes_out(suspect: Suspect, shift: int) -> int:
    """The op that cancels an offset added at `shift`: one of the batch normalisation after it, the softmax that
    follows, or a difference of its elements; -1 if none is near."""
    if _is_normalised(suspect, shift):
        return suspect.topology.onward(shift)[0]
    softmax = _softmax_behind(suspect, shift)
    return softmax if softmax >= 0 else difference_behind(suspect, shift)


def offset_on_both_sides(suspect: Suspect) -> Verdict | None:
    """The last bias of a network whose outputs for two inputs are compared, or another offset that only linear ops lead
    from to the outputs: the difference does not depend on it."""
    users = cancelling_users(suspect)
    join = where_ways_join(suspect, users)
    if join >= 0 and suspect.type_of(join) in ("AddV2", "Add"):
        opposed = _raises_and_lowers(suspect, users, join)
        return Verdict("shift_invariant_parameter", "info", join, OPPOSED) if opposed else None
    if join < 0 or suspect.type_of(join) != "Sub":
        return None
    sums = all(_adds_to_product(suspect, user) for user in users)
    sums = sums or _is_passed_on_linearly(suspect, users, join)
    return Verdict("shift_invariant_parameter", "info", join) if sums else None


OPPOSED = Template(
    "{they_have} no effect on the loss in this step: an offset of all outputs raises one summand of {op} by as "
    "much as it lowers the other.",
    "Nothing to fix: the hinge and Wasserstein losses of a GAN only compare outputs with each other, as long "
    "as no margin is satisfied.",
)
"""Two terms of a loss whose gradients for an offset cancel."""


def _raises_and_lowers(suspect: Suspect, users: Sequence[int], join: int) -> bool:
    """Whether an offset of a network's outputs raises one summand of a loss by as much as it lowers the other, as in
    the hinge and Wasserstein losses of a GAN: only means, signs and margins lead from each call to the sum."""
    topology = suspect.topology
    between = (topology.reached_from(users) & topology.leading_to([join])) - {join, *users}
    last = all(_adds_to_product(suspect, user) for user in users)
    return last and all(suspect.type_of(op) in _MARGINS for op in between)


def _is_passed_on_linearly(suspect: Suspect, users: Sequence[int], join: int) -> bool:
    """Whether an offset reaches both sides of a difference only through sums and products with weights, such as the
    beta of a batch normalization before a last layer. If one side is computed from the other, as a sample is from its
    location, they are not two outputs of one network."""
    topology = suspect.topology
    between = (topology.reached_from(users) & topology.leading_to([join])) - {join}
    added = all(suspect.type_of(user) in (*OFFSETS, "Sub") for user in users)
    multiplied = any(suspect.type_of(op) == "MatMul" for op in between)
    sides = [edge.op for edge in topology.trace.ops[join].inputs if edge.op >= 0]
    if any(side in topology.leading_to([other]) for side in sides for other in sides if other != side):
        return False
    return added and multiplied and all(suspect.type_of(op) in _LINEAR for op in between)


def _adds_to_product(suspect: Suspect, user: int) -> bool:
    """Whether the value is added to a product, as the bias of a layer is. A convolution may reshape its bias first."""
    op = user if suspect.type_of(user) in OFFSETS else -1
    if suspect.type_of(user) in _KEEPING:
        op = _first_other_than(suspect, user, _KEEPING)
    if op < 0 or suspect.type_of(op) not in OFFSETS:
        return False
    sources = suspect.topology.sources
    made_by = suspect.topology.behind(sources(op), _KEEPING)
    return any(suspect.type_of(place) in PRODUCTS for place in made_by)


def _first_other_than(suspect: Suspect, op: int, types: frozenset[str]) -> int:
    """The first op of another type after `op`, as long as each op has one user; -1 if the path forks."""
    users = suspect.topology.onward(op)
    while len(users) == 1:
        if suspect.type_of(users[0]) not in types:
            return users[0]
        users = suspect.topology.onward(users[0])
    return -1


def _is_normalised(suspect: Suspect, op: int) -> bool:
    """Whether a batch normalisation is all that uses the op."""
    trace = suspect.topology.trace
    scopes = suspect.measured.once(
        "batch normalisations",
        lambda: tuple(layer.scope + "/" for layer in trace.layers if "BatchNormalization" in layer.type),
    )
    users = suspect.topology.onward(op)
    return bool(users) and all(
        trace.ops[user].type.startswith("FusedBatchNorm") or trace.ops[user].name.startswith(scopes) for user in users
    )


def _softmax_behind(suspect: Suspect, op: int) -> int:
    """The softmax that scores end in; -1 if something else comes first, or the path forks. A softmax cancels what is
    the same for all elements that it normalises: an offset for each of them it does not cancel, whatever the gradients
    of several calls of the layer add up to."""
    keeps_elements, single = True, _is_single_along_last_axis(suspect)
    for _ in range(SCORING_STEPS):
        users = suspect.topology.onward(op)
        if len(users) != 1:
            return -1
        op = users[0]
        if suspect.type_of(op) in SOFTMAX:
            return op if single or not keeps_elements else -1
        if suspect.type_of(op) not in _SCORING:
            return -1
        keeps_elements &= suspect.type_of(op) in _SAME_PLACES
    return -1


_SAME_PLACES = frozenset({"Cast", "Identity", "AddV2", "Sub", "Mul", "RealDiv"})


def _is_single_along_last_axis(suspect: Suspect) -> bool:
    """Whether the variable that an op adds has one element along the last axis, which a softmax normalises."""
    shape = suspect.topology.trace.variables[suspect.state.variable].shape
    return not shape or shape[-1] == 1


_DIVIDING = frozenset({"Rsqrt", "FusedBatchNormV3"})


def shift_without_influence(suspect: Suspect) -> Verdict | None:
    """Rounding noise: a gradient arrives at the sum to which the variable adds an offset, and cancels over all
    elements. It does not matter which op cancels the offset: a normalisation some layers later, or a masked softmax.
    """
    most, place = steepest(suspect)
    sums = most >= SINGLE_DECADES and suspect.type_of(place) in SHIFTS and _is_given(suspect, place)
    return Verdict("shift_invariant_parameter", "info", place) if sums else None


def _is_given(suspect: Suspect, place: int) -> bool:
    """Whether an op takes the value of the variable itself, or rows of it."""
    ops, found = suspect.topology.trace.ops, []
    for edge in ops[place].inputs:
        op = edge.op
        while op >= 0 and ops[op].reads is None and ops[op].type in SAME_VALUE | ROWS and ops[op].inputs:
            op = ops[op].inputs[0].op
        found.append(read_at(suspect, op))
    return suspect.state.variable in found


def scale_without_influence(suspect: Suspect) -> Verdict | None:
    """The same for a factor: a gradient arrives at the product with it and cancels over all elements, and after the
    product everything is divided by its own norm or standard deviation. For a single number, there may be no noise at
    all."""
    most, place = steepest(suspect)
    if suspect.state.gradient is not None and not suspect.state.gradient.max_abs:
        single = element_count(suspect.topology.trace.variables[suspect.state.variable].shape) == 1
        most, place = (SINGLE_DECADES, suspect.culprit) if single else (0.0, -1)
    if most < SINGLE_DECADES or suspect.type_of(place) != "Mul":
        return None
    if suspect.state.variable not in [read_at(suspect, edge.op) for edge in suspect.topology.trace.ops[place].inputs]:
        return None
    divided = any(suspect.type_of(op) in _DIVIDING for op in just_behind(suspect, place))
    return Verdict("shift_invariant_parameter", "info", place) if divided else None


def message_and_fix(group: Group) -> Text:
    if group.op is not None and group.op.type == "Sub":
        return Template(
            "{they_have} no effect on the loss: both sides of {op} contain {them}. The gradient is rounding noise.",
            _harmless(group),
        )(group)
    if group.suspect.state.status == "unused":
        return Template(
            "{they_have} no effect on the loss: the loss uses only a derivative, which the offset added by {op} does "
            "not change.",
            _harmless(group),
        )(group)
    if group.op is not None and group.op.type == "Mul":
        return Template(
            "{they_have} no effect on the loss: the values after {op} are divided by their own norm or standard "
            "deviation, which cancels any factor. The gradient is rounding noise.",
            "Harmless; remove the factor, or apply it after the normalisation.",
        )(group)
    takers = [taker for op in dict.fromkeys(group.culprits.values()) if (taker := takes_out(group.suspect, op)) >= 0]
    layers = list(dict.fromkeys(layer_of(group.trace, taker) for taker in takers))
    kind = group.trace.ops[takers[0]].type if takers else ""
    name = "softmax" if kind in SOFTMAX else "difference of elements" if kind == "Sub" else "batch normalisation"
    each = "after each of them" if len(group.variables) > 1 else "after it"
    why = f"the {name} {each} ({quoted(layers, 'layers')}) cancels any offset"
    if not takers or "" in layers:
        why = f"the {name} that follows {{op}}" if takers else "a normalisation, softmax or difference after {op}"
        why += " cancels any offset"
    arrives = "zero" if group.suspect.state.status == "zero" else "rounding noise"
    return Template(
        "{they_have} no effect on the loss: " + why + f". The gradient is {arrives}.",
        _harmless(group),
    )(group)


def _harmless(group: Group) -> str:
    """A layer's bias can be switched off; anything else that is added can be left out."""
    biases = all(name.rpartition("/")[2].startswith("bias") and "/" in name for name in group.names)
    return (
        "Harmless; `use_bias=False` removes these weights." if biases else "Harmless; the model can do without {them}."
    )


CAUSE = Cause(
    name="shift_invariant_parameter",
    meaning="an offset in front of a batch normalisation or inside attention scores, or of outputs that are subtracted "
    "from each other, as in pairwise ranking losses and in the critic of a GAN; its gradient is rounding noise, at "
    "most a ten-thousandth of the gradient that arrives at the addition; below 1e-7, this ratio alone is sufficient "
    "evidence. The same holds for a factor in front of a division by the norm, and for an offset if the loss uses only "
    "the derivative of the sum",
    severity="info",
    fix="`use_bias=False`",
    text=message_and_fix,
    told_at_once=True,
    leaves_noise=True,
)
