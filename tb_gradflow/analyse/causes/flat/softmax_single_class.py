"""A softmax over an axis of length one, which is always 1."""

from __future__ import annotations

import re

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.settings import axis_of_batch, of_two_classes, other_axis
from tb_gradflow.analyse.evidence.bodies import unrecorded_before
from tb_gradflow.analyse.evidence.penalties import is_penalty_alone
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import CLIPS, SAME_ELEMENTS, passes_gradient
from tb_gradflow.analyse.words.fields import SIZE, ZERO, fields, filled
from tb_gradflow.analyse.words.names import Group, Text, call_of, namespace
from tb_gradflow.analyse.words.phrases import is_output

# Rounding noise of a float32 subtracted from itself, and of gradients of about one.
_ROUNDING = 1e-6

_FAINT = 1e-5


def rule(suspect: Suspect) -> Verdict | None:
    """Softmax over an axis of length one is always one."""
    single = suspect.culprit in suspect.topology.single_class_ops
    return Verdict("softmax_single_class", "error") if single else None


def divided_by_itself(suspect: Suspect) -> Verdict | None:
    """The same for a loss that divides probabilities by their sum, as Keras's categorical cross-entropy does, and clips
    the result: of one class that is always one."""
    ops = suspect.topology.trace.ops
    divided = suspect.producer if suspect.type_of(suspect.producer) in ("RealDiv", "DivNoNan") else -1
    if divided < 0 or suspect.op.type not in CLIPS:
        return None
    given = {edge.input: edge.op for edge in ops[divided].inputs}
    whole, total = given.get(0, -1), given.get(1, -1)
    if min(whole, total) < 0 or ops[total].type != "Sum" or whole not in [edge.op for edge in ops[total].inputs]:
        return None
    shapes = [ops[op].outputs[-1].shape if ops[op].outputs else None for op in (whole, total)]
    single = shapes[0] is not None and shapes[0] == shapes[1] and shapes[0][-1:] == (1,)
    return Verdict("softmax_single_class", "error", divided) if single else None


def unrecorded(suspect: Suspect) -> Verdict | None:
    """The same if the gradient after the softmax was not recorded, for example because its result was split."""
    among = [op for op in unrecorded_before(suspect) if op in suspect.topology.single_class_ops]
    return Verdict("softmax_single_class", "error", among[-1]) if among else None


def single_class_unseen(suspect: Suspect) -> Verdict | None:
    """The same if the loss hides it: the loss uses the logits, and the output of the model is always one. Or if the
    softmax only approximates one, so that rounding noise comes back, alone or beside the gradient of a penalty."""
    topology = suspect.topology
    if suspect.target < 0:
        return None
    for op in topology.single_class_ops:
        if topology.made_by(op).isdisjoint(topology.readers[suspect.state.variable]):
            continue
        if _is_beside_the_loss(suspect, op) or is_noise_of(suspect, op) or _is_noise_beside_penalty(suspect, op):
            return Verdict("softmax_single_class", "error", op)
    return None


def _is_beside_the_loss(suspect: Suspect, op: int) -> bool:
    """Whether the loss uses what the softmax is given, and not what it returns."""
    topology = suspect.topology
    return topology.influence(suspect.target).hops[op] < 0 or topology.trace.ops[op].type != "Softmax"


def _is_noise_beside_penalty(suspect: Suspect, op: int) -> bool:
    """Whether all paths of a variable lead through an op whose result is always the same, except for that of a penalty
    on the variable."""
    topology, target = suspect.topology, suspect.target
    arrives = topology.gradient(target).hops
    constant = [False] * len(arrives)
    constant[op] = True
    for each in sorted(topology.made_by(op), reverse=True):
        users = [user for user, edge in topology.consumers[each] if passes_gradient(edge) and arrives[user] >= 0]
        constant[each] = constant[each] or (bool(users) and all(constant[user] for user in users))
    return is_penalty_alone(topology, suspect.state.variable, target, constant)


def is_noise_of(suspect: Suspect, op: int) -> bool:
    """Whether a variable gets only rounding noise from an op whose result is always the same."""
    topology, target = suspect.topology, suspect.target
    if suspect.state.gradient is None or suspect.state.gradient.max_abs > _FAINT:
        return False
    given = [edge.op for edge in topology.trace.ops[op].inputs]
    arriving = suspect.measured.of_op(target, op)
    left = suspect.measured.of_op(target, given[0]) if given else None
    # The gradient of a tensor that something else reads as well may not have been recorded.
    size = arriving.max_abs if arriving is not None else 1.0
    if left is None or left.max_abs > _ROUNDING * size:
        return False
    return not topology.made_by(op).isdisjoint(topology.readers[suspect.state.variable])


_PENALTY = "{they_get} no gradient except from a penalty: "


def message_and_fix(group: Group) -> Text:
    names = fields(group)
    is_small = group.suspect.state.status in ("zero", "vanishing")
    hidden = not is_small and _is_beside_the_loss(group.suspect, group.culprit)
    penalised = not is_small and not hidden and not is_noise_of(group.suspect, group.culprit)
    shape = _as_called(group)
    first = 0 if _is_of_a_variable_alone(group) else 1
    batch = axis_of_batch(group, shape) if first else -1
    several = [axis for axis, size in enumerate(shape) if axis != batch and size != 1]
    sigmoid = "{lib}.sigmoid({x})" if call_of(group) is not None else 'activation="sigmoid"'
    fix = f"Use `{sigmoid}` for one unit, or one unit per class."
    if "categorical_crossentropy" in (group.op.name if group.op is not None else ""):
        fix = 'For one unit, use a sigmoid with `loss="binary_crossentropy"`; or use one unit per class.'
    softmax = "keras.ops.softmax" if namespace(group) == "keras.ops" else "tf.nn.softmax"
    called_there = call_of(group) is not None and not is_output(group)
    if several and len(shape) > 2 and not hidden:
        fix = f"Normalise over the axis with several entries: `{softmax}({{x}}, axis={several[0]})`."
    elif len(shape) == 2 and first == 1 and called_there and not hidden:
        fix += f" If the entries to be weighted lie along another axis, use `{softmax}({{x}}, axis=0)`."
    if hidden:
        why = (
            "The output of the model is constant: {op} normalises over an axis of length one, where the result is "
            "always 1. The loss is computed from the logits, so this does not show during training."
        )
        return Text(filled(why, names), filled(fix, names))
    start = SIZE if group.suspect.state.status == "connected" else ZERO
    message = (
        _PENALTY if penalised else start
    ) + "{op} normalises over an axis of length one, where the result is always 1."
    return Text(filled(message, names), filled(fix, names))


def _as_called(group: Group) -> tuple[int | None, ...]:
    """The culprit's shape as its caller counts axes: TensorFlow's softmax works on the last, and swaps another with
    it before and after."""
    shape = list((group.op.outputs[-1].shape if group.op is not None and group.op.outputs else None) or ())
    call = call_of(group)
    said = (call.argument(1, "axis") if call is not None else None) or "-1"
    axis = int(said) if re.fullmatch(r"-?\d{1,9}", said) else -1
    if -len(shape) <= axis < len(shape):
        shape[axis], shape[-1] = shape[-1], shape[axis]
    return tuple(shape)


def _is_of_a_variable_alone(group: Group) -> bool:
    """Whether the input of the culprit is a weight in another shape: its first axis is not that of a batch."""
    trace, op = group.trace, group.culprit
    while op >= 0 and trace.ops[op].reads is None:
        sources = [edge.op for edge in trace.ops[op].inputs if edge.op >= 0]
        if len(sources) != 1 or (op != group.culprit and trace.ops[op].type not in SAME_ELEMENTS):
            return False
        op = sources[0]
    return op >= 0


CAUSE = Cause(
    name="softmax_single_class",
    meaning="a softmax over an axis of length one, also where the loss of Keras uses the logits in front of it; or a "
    "categorical cross-entropy of a single probability",
    severity="error",
    fix="another axis, or sigmoid",
    text=message_and_fix,
    leaves_noise=True,
    edits=(other_axis, of_two_classes),
)
