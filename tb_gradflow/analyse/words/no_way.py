"""Words for variables that are unused, frozen, expected, or that the tape lost."""

from __future__ import annotations

import re

from tb_gradflow.analyse.causes.tape import ended_early
from tb_gradflow.analyse.causes.unused import stands_for_masked
from tb_gradflow.analyse.twins import twin_in_use
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import (
    Group,
    Text,
    Writer,
    called,
    layer_of,
    place_of,
    quoted,
    result_of_line,
    source_of,
)
from tb_gradflow.record.schema import EAGER


def tape_scope(group: Group) -> Text:
    """Of an eager loss nobody knows what it was computed from."""
    target = group.trace.targets[group.suspect.target].op if group.suspect.target >= 0 else -1
    if target >= 0 and group.trace.ops[target].type == EAGER:
        return Template(
            "{they_get} no gradient. The loss was eager, so its way is not recorded: either the loss was not computed "
            "from {them}, or something on the way let no gradient pass.",
            "Take the step inside of `tf.function`, or record it with `tb_gradflow.watch`, to see where the way ends.",
        )(group)
    return Template(
        "{they_get} no gradient: a differentiable way leads to the loss, and the tape did not see it{line}. "
        "The forward pass, or a part of it, ran outside of the `with` block" + _read_at(group) + ".",
        "Call the model inside: `with tf.GradientTape() as tape: loss = loss_fn(y, model(x, training=True))`.",
    )(group)


def _read_at(group: Group) -> str:
    """Where the step reads a variable that the tape never saw; empty if it saw it, or nobody's line does."""
    state, topology = group.suspect.state, group.suspect.topology
    if state.entry is None or state.entry.watched:
        return ""
    influence = topology.influence(state.target).hops
    readers = [op for op in topology.readers[state.variable] if influence[op] >= 0]
    return next((place_of(group.trace, op) for op in readers if source_of(group.trace, op) is not None), "")


def output_not_used(group: Group) -> Text:
    """A variable of no layer has no output that could be used; it is the variable that has to take part."""
    if any(group.trace.variables[variable].computed for variable in group.variables):
        return _no_part(group)
    why = "what is computed from {them} ends at {op} and never reaches the loss" if group.culprit >= 0 else _UNREAD
    python = _python_on_the_way(group) if group.culprit < 0 else ""
    if python:
        return Template(
            "{they_get} no gradient: no op of TensorFlow in this step computes with {them}. If the function that "
            + python
            + " calls does, no gradient comes of that: it has one for its arguments alone.",
            "Pass {names} to that function as arguments, `tf.py_function(f, [x, {variable}], x.dtype)`; if it does not "
            "use {them}, let {names} take part in the loss, or remove {them}.",
        )(group)
    twin = twin_in_use(group.suspect.topology, group.variables[0], group.suspect.target) if group.culprit < 0 else ""
    if twin:
        return Template(
            "{they_get} no gradient: the step computes with another network that has the same names, "
            f"`{twin}`, and not with {{them}}.",
            "Call the network that is to be trained, not the copy of it; or pass the copy's variables to "
            "`tape.gradient(...)` and to the optimizer.",
        )(group)
    if group.source is not None and group.culprit >= 0 and ".add_loss(" in group.source.code:
        return Template(
            "{they_get} no gradient: what is computed from {them} is given to `add_loss`{place}, and this step leaves "
            "the losses of the layers out.",
            "Add them in the step, `loss += sum(model.losses)`, in a `train_step` of the model `sum(self.losses)`; or "
            "take the loss from `self.compute_loss(x, y, y_pred)`, which does.",
        )(group)
    owners = {name.rpartition("/")[0] for name in group.names}
    if group.culprit >= 0 and len(owners) > 2:
        result = result_of_line(group)
        what = f"`{result}`{{place}}" if result else "what {op} computes"
        fix = "Use " + what + " on the way to the loss, or give it a loss of its own."
    elif not _in_layer(group):
        fix = "Let {names} take part in the loss, or remove {them}."
    elif _is_in_use(group, owners):
        fix = "Let {names} take part in what {layer} computes for the loss, or remove {them}."
    elif group.culprit >= 0 and _ends_outside(group, owners):
        fix = "Use what {op} computes on the way to the loss, or give it a loss of its own."
    elif group.culprit >= 0:
        fix = "Use the output of {layer} on the way to the loss, `x = {attribute}(x)`, or give it a loss of its own."
    else:
        fix = "Call {layer} on the way to the loss, `x = {attribute}(x)`, or leave it out of the model."
    return Template("{they_get} no gradient: " + why + ".", fix)(group)


def idle(group: Group) -> Text:
    if group.culprit < 0 and all(map(stands_for_masked, group.names)):
        return Template(
            "{they_are} idle: nothing is masked in this step. That is harmless if masking is for another phase.",
            f'Nothing to repair in that case; `expected=["{group.names[0]}"]` keeps it quiet.',
        )(group)
    return Template(
        "{they_are} idle: this loss does not use the output of {layer}. That is harmless.",
        'Nothing to repair; `{attribute}.trainable = False` or `expected=["{pattern}"]` keeps it quiet.',
    )(group)


def _python_on_the_way(group: Group) -> str:
    """The `tf.py_function` that the loss is computed through, whose function may read anything; empty if there is
    none."""
    topology, target = group.suspect.topology, group.suspect.target
    reaches = topology.influence(target).hops if target >= 0 else ()
    found = [op for op in topology.by_type.get("EagerPyFunc", ()) if reaches and reaches[op] >= 0]
    return called(group.trace, found[0]) + place_of(group.trace, found[0]) if found else ""


def _is_in_use(group: Group, owners: set[str]) -> bool:
    """Whether the loss is computed from other variables of the same layer, or of layers in it: it is called already."""
    topology, target, own = group.suspect.topology, group.suspect.target, set(group.variables)
    others = [(place, each.name) for place, each in enumerate(group.trace.variables) if place not in own]
    return target >= 0 and all(
        any(name.startswith(owner + "/") and topology.influences(place, target) for place, name in others)
        for owner in owners
    )


def _ends_outside(group: Group, owners: set[str]) -> bool:
    """Whether the user's own line made the last op, behind the layers of these variables."""
    called_here = group.op is not None and group.op.api is not None and group.source is not None
    inside = layer_of(group.trace, group.culprit).rpartition("/")[2]
    return called_here and inside not in {owner.rpartition("/")[2] for owner in owners}


def _no_part(group: Group) -> Text:
    """A tensor that was made beside the loss, and not on the way to it; and the variables that it was made of."""
    variables = group.trace.variables
    tensors = quoted([variables[place].name for place in group.variables if variables[place].computed])
    used = [variables[place].name for place in group.variables if not variables[place].computed]
    made = "{op} made " + tensors + (f" of {quoted(used)}" if used else "") + ", and " if group.culprit >= 0 else ""
    instead = (
        f"ask for {quoted(used)}, which the loss was made of"
        if used
        else ("ask for the variable that the loss was made of")
    )
    target = group.suspect.target
    name = group.trace.targets[target].name if target >= 0 else ""
    loss, told = "the loss", "the loss"
    if name.isidentifier() and name != "loss":
        loss, told = f"`{name}`", f"`{name}`{{line}}"
    return Template(
        "{they_get} no gradient: " + made + told + f" was not computed from {tensors}. A gradient follows how it was "
        "made, not which values are equal.",
        f"Compute {loss} from {tensors}, and ask for the gradient of that; or {instead}.",
    )(group)


_UNREAD = "nothing in this step computes with {them}"


def state(group: Group) -> Text:
    if any(group.trace.variables[variable].trainable for variable in group.variables):
        return Template(
            "{they_get} no gradient, and need none: the step assigns to {them}, and nothing computes with {them}.",
            "Say that it is state: `tf.Variable(..., trainable=False)`.",
        )(group)
    return Template(
        "{they_get} no gradient, and need none: a gradient was asked for state that training does not learn.",
        "Ask for `model.trainable_variables` in the place of `model.variables`.",
    )(group)


def penalised(group: Group) -> Text:
    if group.verdict.severity == "info":
        return Template(
            "{they_are} only added to the loss: no data take part, and the gradient is the same in every step.",
            "Nothing to repair if this is meant; as it is, there is nothing to learn from it.",
        )(group)
    if not _in_layer(group):
        return Template(
            "{they_get} no gradient but that of a penalty: the part of the loss that depends on the data does not use "
            "{them}.",
            "Let {names} take part in what is compared with the data, or remove {them}.",
        )(group)
    return Template(
        "{they_get} no gradient but that of the weight regulariser: the output of {layer} never reaches the loss.",
        "Use the output of {layer} on the way to the loss, for example `x = {attribute}(x)`, or remove the layer.",
    )(group)


# So many layers can be named one by one.
_FEW = 3

# TensorFlow's name of a node, in front of what it says.
_NODE = re.compile(r"\{+[^{}]*\}+ ?")


def not_asked(group: Group) -> Text:
    owner = group.names[0].rpartition("/")[0] + "/"
    whole = all(
        index in group.variables
        for index, variable in enumerate(group.trace.variables)
        if variable.trainable and variable.name.startswith(owner)
    )
    quiet = "`{attribute}.trainable = False`" if whole else '`expected=["{pattern}"]`'
    if len({name.rpartition("/")[0] for name in group.names}) > _FEW:
        quiet = "`trainable = False` for each of their layers"
    if not _in_layer(group):
        quiet = "`tf.Variable(..., trainable=False)`"
    ask = "Pass all of them, `tape.gradient(loss, model.trainable_variables)`"
    if len(group.trace.targets) > 1:
        ask = "Ask the tape whose loss is to train {them} for {them} too, `tape.gradient(loss, [...])`"
    if ended_early(group.suspect.measured):
        return Template(
            "{they_take} part in the loss, and `tape.gradient` had not been asked for {them}{line} when the step ended "
            "with an error.",
            f"Look at that error first. If nothing asks later in the step: {ask[0].lower()}{ask[1:]}.",
        )(group)
    return Template(
        "{they_take} part in the loss, and `tape.gradient` was not asked for {them}{line}.",
        f"{ask}; if this is meant, say so: {quiet}.",
    )(group)


def frozen(group: Group) -> Text:
    if group.verdict.severity == "info":
        return Template(
            "{they_get} no gradient: a gradient was asked for {them}, and {they_have_flag} `trainable=False`.",
            "If {names} {is_to} learn, make {them} trainable, `tf.Variable(..., trainable=True)` or "
            "`layer.trainable = True`; else leave {them} out of what the gradient is asked for.",
        )(group)
    return Template(
        "Nothing is trained: all {count} variables of the model have `trainable=False`.",
        "Set `model.trainable = True` before this training; Keras 3 reads the flag while it trains, not at `compile`.",
    )(group)


def not_watching(group: Group) -> Text:
    """A tensor is watched by itself only where it is made of what the tape watches, inside of its block."""
    if group.trace.variables[group.variables[0]].computed:
        return Template(
            "{they_get} no gradient: a differentiable way leads to the loss, and the tape did not follow it{line}: "
            "{names} and what is computed from {them} have to be made inside of the `with` block.",
            "Make {names} inside the `with` block; or say `tape.watch({variable})` there, before the loss is computed.",
        )(group)
    return Template(
        "{they_get} no gradient: a differentiable way leads to the loss, and the tape does not watch {them}{line}.",
        "Drop `watch_accessed_variables=False`, or watch them too: "
        "`tape.watch([v.value for v in model.trainable_variables])`.",
    )(group)


def xla(group: Group) -> Text:
    """With the words of TensorFlow's own error: what XLA minds differs."""
    return Template(
        "{they_get} no gradient: XLA cannot compile the gradient of a function with `jit_compile=True`{place}. "
        f"TensorFlow says: {_NODE.sub('', group.trace.failure)[:200]}",
        "Leave `jit_compile=True` out there, or compile the whole step with its tape, "
        "`@tf.function(jit_compile=True) def train_step(...)`; loops need `maximum_iterations`.",
    )(group)


def not_measured(group: Group) -> Text:
    """With what was raised, where that happened while the gradient was computed."""
    if group.verdict.severity == "error":
        return Template(
            f"{{they_get}} no gradient: computing it{{line}} raises {_NODE.sub('', group.trace.failure)[:200]}",
            "Look at what goes into that op in this step; `tf.config.run_functions_eagerly(True)` shows the line that "
            "raises.",
        )(group)
    return Template(
        "Not verified: no step was completed, so nobody knows what gradient {names} would get. The structure alone "
        "shows no fault.",
        "Let one step run to its end, and look at what it raises: `model.train_on_batch(x, y)`.",
    )(group)


def _in_layer(group: Group) -> bool:
    return "/" in group.names[0]


WRITERS: dict[str, Writer] = {
    "output_not_used": output_not_used,
    "unused_by_design": idle,
    "recurrent_weight_single_step": Template(
        "{they_get} no gradient: the recurrent layer sees one time step, so its state weights multiply a first "
        "state of zeros.",
        "Feed sequences of two steps or more, shaped `[batch, time, features]`, or use a `Dense` layer.",
    ),
    "regularizer_only": penalised,
    "not_in_gradient_sources": not_asked,
    "tape_not_watching": not_watching,
    "tape_scope": tape_scope,
    "xla_boundary": xla,
    "not_measured": not_measured,
    "frozen_by_flag": frozen,
    "non_trainable_state": state,
    "expected": Template("{they_get} no gradient that trains, as expected.", "Nothing to repair."),
}
