"""Words for ReLUs that let nothing through."""

from __future__ import annotations

from tb_gradflow.analyse.causes.zero import BRANCHES
from tb_gradflow.analyse.graph.op_sets import COPIES
from tb_gradflow.analyse.words.fields import ZERO, Template
from tb_gradflow.analyse.words.names import Group, Text, Writer, call_of, layer_of, namespace


def dead_relu(group: Group) -> Text:
    is_relu = group.op is not None and ("Relu" in group.op.type or group.op.type in ("Maximum", *BRANCHES))
    why = "{op} is zero, and flat, " if is_relu else "{op} multiplies with the output of a ReLU that is zero "
    by_hand = group.op is not None and group.op.type == "Maximum"
    fix = _by_hand(group) if by_hand else _LET_THROUGH
    if is_relu and not by_hand and _is_last(group):
        fix = "If this is what the model predicts, leave the ReLU out: it predicts nothing below zero. Else l" + fix[1:]
    return Template(ZERO + why + "for every input of this step.", fix)(group)


def _is_last(group: Group) -> bool:
    """Whether what a layer puts out goes into the loss, and into nothing else."""
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
    """Of `maximum(x, 0)`: in a layer it stands for a ReLU, in a loss for a margin or an overlap."""
    call, keras = call_of(group), namespace(group) == "keras.ops"
    shown = call is not None and any(each.strip("0.") == "" for each in call.arguments)
    x, whole = ("{x}", "{whole}") if shown else ("x", "keras.ops.maximum(x, 0)" if keras else "tf.maximum(x, 0)")
    fix = f"Let something through below zero, `{'keras.ops' if keras else 'tf.nn'}.leaky_relu({x})` in the place of "
    if layer_of(group.trace, group.culprit):
        return fix + f"`{whole}`; lower the learning rate, or start the bias of the layer at zero."
    return (
        fix
        + f"`{whole}`; or give the loss a term with a slope there too, such as the distance between what is compared."
    )


_LET_THROUGH = (
    'Let something through below zero, `activation="leaky_relu"`, lower the learning rate, or start the bias of the '
    "layer at zero."
)


WRITERS: dict[str, Writer] = {"dead_relu": dead_relu}
