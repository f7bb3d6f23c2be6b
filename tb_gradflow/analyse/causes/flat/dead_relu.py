"""A ReLU lets nothing through."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.settings import leaky
from tb_gradflow.analyse.evidence.bodies import flat_unseen
from tb_gradflow.analyse.evidence.optimum import is_at_goal, is_last
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import BRANCHES, COPIES, constant_of
from tb_gradflow.analyse.graph.paths import walked
from tb_gradflow.analyse.words.fields import ZERO, Template
from tb_gradflow.analyse.words.names import Group, Text, call_of, layer_of, namespace

_RELU = frozenset({"Relu", "Relu6", "ReluN"})


def rule(suspect: Suspect) -> Verdict | None:
    """A ReLU that no input of this step activates. If two ReLUs split a value between them, as in a PReLU, one of them
    is always zero.
    """
    if suspect.op.type not in _RELU:
        return None
    if _is_other_half(suspect):
        return Verdict("branch_not_taken", "info", suspect.culprit)
    if is_at_goal(suspect) and is_last(suspect.topology, suspect.target, suspect.culprit):
        return Verdict("saturation_clip", "info")  # a margin and not a unit: nothing is computed from its output
    return Verdict("dead_relu", "error")


def relu_unseen(suspect: Suspect) -> Verdict | None:
    """A ReLU, and no other op inside that could be flat."""
    relu = flat_unseen(suspect, ("Relu", "Relu6"))
    return Verdict("dead_relu", "error", relu) if relu >= 0 else None


def dead_relu_by_choice(suspect: Suspect) -> Verdict | None:
    """The same for a ReLU with a `threshold`, which Keras writes as a choice between the value and zero."""
    by_choice = suspect.op.type in BRANCHES and (suspect.op.api or "").rpartition(".")[2] == "relu"
    return Verdict("dead_relu", "error") if by_choice else None


def _is_other_half(suspect: Suspect) -> bool:
    """Whether the input of the ReLU is the negative of the input of another one."""
    topology, ops = suspect.topology, suspect.topology.trace.ops
    given = [edge.op for edge in suspect.op.inputs if edge.op >= 0]
    turned = [edge.op for op in given if ops[op].type == "Neg" for edge in ops[op].inputs if edge.op >= 0]
    behind = [op for op in given if ops[op].type != "Neg" for op, _ in topology.consumers[op] if ops[op].type == "Neg"]
    others = [user for op in (*turned, *behind) for user, _ in topology.consumers[op] if user != suspect.culprit]
    return any(ops[user].type in _RELU for user in others)


def dead_relu_by_hand(suspect: Suspect) -> Verdict | None:
    """The same written as `maximum(x, 0)`. In a loss that is zero this is a satisfied margin, which is no problem; with
    an upper limit after it, it is one end of a clip."""
    by_hand = suspect.op.type == "Maximum" and (suspect.op.api or "").endswith("maximum")
    at_zero = by_hand and 0.0 in (constant_of(suspect.op, 0), constant_of(suspect.op, 1))
    if not at_zero or is_at_goal(suspect) or _is_limited(suspect):
        return None
    return Verdict("dead_relu", "error")


def _is_limited(suspect: Suspect) -> bool:
    """Whether the result goes into a minimum, possibly scaled or shifted."""
    onward = suspect.topology.onward
    scaling = ("Mul", "RealDiv", "AddV2", "Sub")
    scaled = walked([suspect.culprit], lambda op: (user for user in onward(op) if suspect.type_of(user) in scaling))
    return any(suspect.type_of(user) == "Minimum" for op in scaled for user in onward(op))


def message_and_fix(group: Group) -> Text:
    is_relu = group.op is not None and ("Relu" in group.op.type or group.op.type in ("Maximum", *BRANCHES))
    why = "{op} multiplies by the output of a ReLU that is zero "
    if is_relu:
        why = "the output of {op} is zero, and so is its derivative, "
    by_hand = group.op is not None and group.op.type == "Maximum"
    if group.op is not None and group.op.type == "Relu6":
        why = "the output of {op} is zero or six, and its derivative is zero, "
    fix = _by_hand(group) if by_hand else _LET_THROUGH
    if is_relu and not by_hand and _is_last(group):
        fix = (
            "If this is the output of the model, remove the ReLU: it cannot predict negative values. Otherwise, u"
            + fix[1:]
        )
    return Template(ZERO + why + "for every input of this step.", fix)(group)


def _is_last(group: Group) -> bool:
    """Whether the output of a layer goes into the loss, and into nothing else."""
    trace, queue = group.trace, [group.culprit]
    if not layer_of(trace, group.culprit):
        return False
    for op in queue:  # grows while it is walked
        users = set(group.suspect.topology.onward(op))
        if not users or len(queue) > _NEAR:
            return False
        inside = [user for user in users if trace.ops[user].type in COPIES]
        if any("loss" not in trace.ops[user].name.partition("/")[0] for user in users - set(inside)):
            return False
        queue.extend(inside)
    return True


_NEAR = 6


def _by_hand(group: Group) -> str:
    """The fix for `maximum(x, 0)`: in a layer it is a ReLU, in a loss a margin or an overlap."""
    call, keras = call_of(group), namespace(group) == "keras.ops"
    shown = call is not None and any(each.strip("0.") == "" for each in call.arguments)
    x, whole = ("{x}", "{whole}") if shown else ("x", "keras.ops.maximum(x, 0)" if keras else "tf.maximum(x, 0)")
    leaky = f"{'keras.ops' if keras else 'tf.nn'}.leaky_relu({x})"
    fix = f"Use `{leaky}`, which passes a gradient for negative inputs, instead of "
    if layer_of(group.trace, group.culprit):
        return fix + f"`{whole}`; lower the learning rate, or initialise the bias of the layer to zero."
    return (
        fix + f"`{whole}`; or add a loss term that has a gradient there too, such as the distance between the compared "
        f"values."
    )


_LET_THROUGH = (
    'Use `activation="leaky_relu"`, which passes a gradient for negative inputs; lower the learning rate, or '
    "initialise the bias of the layer to zero."
)


CAUSE = Cause(
    name="dead_relu",
    meaning="the gradient becomes zero at a ReLU, or at a `maximum(x, 0)` that is not part of a clip; or at a product "
    "with the output of a ReLU that is zero everywhere",
    severity="error",
    fix="leaky ReLU, lower learning rate",
    text=message_and_fix,
    edits=(leaky,),
)
