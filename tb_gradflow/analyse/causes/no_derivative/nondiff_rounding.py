"""A value is rounded, and the derivative of rounding is zero or missing."""

from __future__ import annotations

from dataclasses import replace

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.positions import soft_position
from tb_gradflow.analyse.edits.soft import soft_mask
from tb_gradflow.analyse.edits.straight_through import through_rounding, unrounded
from tb_gradflow.analyse.evidence.discrete import COMPARISON, REMAINDERS, ROUNDING, is_at_limits_of_logarithm
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict, discrete_part
from tb_gradflow.analyse.graph.op_sets import passes_gradient
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.step.measured import is_zero
from tb_gradflow.analyse.words.fields import SIZE, fields, filled
from tb_gradflow.analyse.words.integers import only_as_integers, weighed_in_place_of_integers
from tb_gradflow.analyse.words.names import Group, Text, called, layer_of, namespace, place_of
from tb_gradflow.analyse.words.soft import passed_through, soft_step


def rule(suspect: Suspect) -> Verdict | None:
    """Rounding: its registered gradient is None."""
    return Verdict("nondiff_rounding", "error") if suspect.op.type in ROUNDING else None


_NEARBY = 12


def detour_around_rounding(suspect: Suspect) -> Verdict | None:
    """The paths around a rounded value cancel, `x - (x - floor(x))`, and the path through it has no derivative."""
    if suspect.op.type not in ("Sub", "AddV2", "Add", "Neg") and not _subtracts_twice(suspect):
        return None
    influence = suspect.topology.influence(suspect.target).hops
    near = list(suspect.topology.readers[suspect.state.variable])
    for op in near:  # grows while it is walked
        near.extend(each for each in suspect.topology.onward(op) if each not in near and len(near) < _NEARBY)
        for consumer, _ in suspect.topology.consumers[op]:
            if influence[consumer] >= 0 and suspect.type_of(consumer) in ROUNDING:
                return Verdict("nondiff_rounding", "error", consumer)
    return None


_CHOOSING = frozenset({"Maximum", "Minimum", "SelectV2", "Select"})


def rounded_side_is_chosen(suspect: Suspect) -> Verdict | None:
    """`maximum(floor(x), y)`, where the rounded value is the larger one in every element: the gradient goes there, and
    the other side gets none."""
    if suspect.op.type not in _CHOOSING:
        return None
    topology, readers = suspect.topology, set(suspect.topology.readers[suspect.state.variable])
    ops = topology.trace.ops

    def back(op: int) -> list[int]:
        return [edge.op for edge in ops[op].inputs if edge.op >= 0 and passes_gradient(edge)]

    for edge in suspect.op.inputs:
        if edge.op < 0 or not passes_gradient(edge):
            continue
        behind = list(walked([edge.op], back))
        rounded = [op for op in behind if ops[op].type in ROUNDING and suspect.leads_to(op)]
        gradient = suspect.measured.of_op(suspect.target, rounded[0]) if rounded else None
        if readers.isdisjoint(behind) and gradient is not None and not is_zero(gradient):
            return Verdict("nondiff_rounding", "error", rounded[0])
    return None


_EXTREMES = frozenset({"Max", "Min"})


def range_alone(suspect: Suspect) -> Verdict | None:
    """A quantiser without a straight-through estimator: values are divided by their own largest and rounded, and the
    gradient arrives only at that largest element, through the scale."""
    topology, target = suspect.topology, suspect.target
    if target < 0 or not topology.by_type.keys() & _EXTREMES or not topology.by_type.keys() & ROUNDING:
        return None
    influence, arrives = topology.influence(target).hops, topology.gradient(target).hops
    readers, ops = topology.readers[suspect.state.variable], topology.trace.ops

    def values(op: int) -> list[int]:
        stops = _EXTREMES | ROUNDING
        return [user for user, _ in topology.consumers[op] if influence[user] >= 0 and ops[op].type not in stops]

    met = list(walked(readers, values))
    extremes = [op for op in met if ops[op].type in _EXTREMES and arrives[op] >= 0]
    rounded = [op for op in met if ops[op].type in ROUNDING and not topology.made_by(op).isdisjoint(extremes)]

    def gradients(op: int) -> list[int]:
        passing = topology.onward(op) if ops[op].type not in _EXTREMES else ()
        return [user for user in passing if arrives[user] >= 0]

    if not rounded or topology.trace.targets[target].op in walked(readers, gradients):
        return None
    return Verdict("nondiff_rounding", "warning", rounded[0])


def _subtracts_twice(suspect: Suspect) -> bool:
    """Whether the part before the suspect that was not measured is an `x - (x - y)`."""
    ops = suspect.topology.trace.ops
    if suspect.exact or suspect.type_of(suspect.producer) != "Sub":
        return False
    given = {edge.input: edge for edge in ops[suspect.producer].inputs if edge.op >= 0}
    inner = ops[given[1].op].inputs if 1 in given and suspect.type_of(given[1].op) == "Sub" else ()
    taken = next((edge.op for edge in inner if edge.input == 0), -1)
    return 0 in given and given[0].op == taken >= 0


def message_and_fix(group: Group) -> Text:
    names = fields(group)
    if group.op is not None and group.op.type in REMAINDERS:
        library = namespace(group)
        return Text(
            filled(
                SIZE + "what is left without the remainder, {op}, is a rounded value, and a step function has no "
                "derivative: the gradients of the two paths cancel.",
                names,
            ),
            f"Use a straight-through estimator: `{library}.stop_gradient({names['whole']})` instead of the remainder.",
        )
    fix = f"use a straight-through estimator: {passed_through(group)}."
    discrete = discrete_part(group.suspect).ops
    compared = [op for op in discrete if group.trace.ops[op].type in COMPARISON]
    counting = [op for op in compared if (group.trace.ops[op].api or "").endswith(".repeat")]
    if counting:
        fix = (
            f"train the value before it is rounded with its own loss against known counts: how often "
            f"{called(group.trace, counting[0])} repeats a row has no derivative."
        )
    elif compared:
        fix = f"drop the rounding and compare softly: `{soft_step(replace(group, culprit=compared[0]))}`."
    elif only_as_integers(group):
        fix = weighed_in_place_of_integers(group)
    elif is_at_limits_of_logarithm(group.suspect, group.culprit):
        fix = (
            f"take the loss of the values before {called(group.trace, group.culprit)}, and round only in a metric or "
            "what is predicted. A straight-through estimator does not help here: the loss clips its input, and at the "
            "limits its slope is zero."
        )
    elif _is_in_loss(group):
        fix = f"keep `{names['whole']}` out of the loss and round only in a metric, or " + fix
    state = group.suspect.state
    is_alone = group.verdict.severity == "warning" and not state.zeros and not state.beside
    if is_alone and _is_cast_next(group):
        fix = f"{fix.removesuffix('.')}, and leave out the cast to integers, through which no gradient passes."
    around = " The gradients on the other paths add up to zero." if state.status == "zero" else ""
    if around and group.suspect.type_of(group.suspect.culprit) in _CHOOSING:
        chosen = called(group.trace, group.suspect.culprit) + place_of(group.trace, group.suspect.culprit)
        around = f" {chosen} takes the rounded value in every element, so the other side gets no gradient either."
    message = SIZE + "{op} rounds, and a step function has no derivative." + around
    if is_alone:
        message = (
            "{they_get} a gradient only at the largest or smallest element, through the scale: {op} rounds the values "
            "themselves, and a step function has no derivative."
        )
    return Text(filled(message, names), fix[0].upper() + fix[1:])


def _is_cast_next(group: Group) -> bool:
    return any(group.trace.ops[user].type == "Cast" for user, _ in group.suspect.topology.consumers[group.culprit])


def _is_in_loss(group: Group) -> bool:
    """Whether the culprit comes after every layer."""
    name = group.op.name.lower() if group.op else ""
    return "loss" in name and not layer_of(group.trace, group.culprit)


CAUSE = Cause(
    name="nondiff_rounding",
    meaning="Round, Rint, Floor, Ceil, `//`, `%` on every path; or the paths around it cancel, as in `x - (x - "
    "floor(x))`; or on every path except that of a quantiser's scale, which is the largest of the same values",
    severity="error; warning where the scale gets a gradient",
    fix="a straight-through estimator: `x + tf.stop_gradient(tf.round(x) - x)`",
    text=message_and_fix,
    verb="blocks it",
    edits=(
        unrounded,
        soft_mask,
        through_rounding,
        soft_position,
    ),
    quotes=("Use a straight-through estimator: ",),
)
