"""Words for variables that are frozen, expected, never trained alone, or that the tape lost."""

from __future__ import annotations

import re

from tb_gradflow.analyse.causes.tape import ended_early
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import (
    Group,
    Text,
    Writer,
    place_of,
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
    if not in_layer(group):
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
    if not in_layer(group):
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
    if group.verdict.severity == "error":
        return Template(
            "{they_take} part in the loss, and `tape.gradient` was asked for nothing{line}: its list is empty.",
            "Look at that list. A model that was not built yet has no variables, nor has one with `trainable = False`, "
            "and a list that was taken before stays empty: `tape.gradient(loss, model.trainable_variables)`.",
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
    if _is_data(group):
        return Template(
            "{they_get} no gradient: the tape was asked for {them}{line} and does not watch {them}. By itself it "
            "watches variables, and what is computed from them.",
            f"Say so at the head of the `with` block: {_watch(group)}.",
        )(group)
    if group.trace.variables[group.variables[0]].computed:
        return Template(
            "{they_get} no gradient: a differentiable way leads to the loss, and the tape did not follow it{line}: "
            "{names} and what is computed from {them} have to be made inside of the `with` block.",
            f"Make {{names}} inside the `with` block; or say {_watch(group)} there, before the loss is computed.",
        )(group)
    return Template(
        "{they_get} no gradient: a differentiable way leads to the loss, and the tape does not watch {them}{line}.",
        "Drop `watch_accessed_variables=False`, or watch them too: "
        "`tape.watch([v.value for v in model.trainable_variables])`.",
    )(group)


# How a tape is asked, with its name in front.
_ASKED = re.compile(r"(?<![\w.])([A-Za-z_][\w.]*)\.(?:gradient|jacobian|batch_jacobian)\(")


def _watch(group: Group) -> str:
    """The call that makes the user's tape watch a tensor: a template."""
    target = group.suspect.target
    source = group.trace.targets[target].source if target >= 0 else None
    tapes = _ASKED.findall(group.trace.sources[source].code) if source is not None else []
    if len(tapes) == 1:
        return f"`{tapes[0]}.watch({{variable}})`"
    return "`tape.watch({variable})`, with the name that your tape has"


def _is_data(group: Group) -> bool:
    """Whether the step was given the tensors, or holds them as constants."""
    readers = [op for variable in group.variables for op in group.suspect.topology.readers[variable]]
    return bool(readers) and all(group.trace.ops[op].type in ("Placeholder", "Const") for op in readers)


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
        "Let one step run to its end, and look at what it raises"
        + (": `model.train_on_batch(x, y)`." if any(each.tracked for each in group.trace.variables) else "."),
    )(group)


def single_step(group: Group) -> Text:
    """Of a layer that sees one step; or of the half of a `Bidirectional` that has seen one where the loss looks."""
    if all(_BACKWARD.search(name) for name in group.names):
        return Template(
            "{they_get} no gradient: what the loss uses of the backward direction is its first step, at the end of the "
            "sequence, where its state weights multiply a first state of zeros.",
            "Take the last state of both directions, `return_sequences=False`, in the place of the last step of what "
            "`return_sequences=True` hands back.",
        )(group)
    return Template(
        "{they_get} no gradient: the recurrent layer sees one time step, so its state weights multiply a first "
        "state of zeros.",
        "Feed sequences of two steps or more, shaped `[batch, time, features]`, or use a `Dense` layer.",
    )(group)


# As `Bidirectional` names its second half.
_BACKWARD = re.compile(r"(?:^|/)backward_")


def in_layer(group: Group) -> bool:
    """Whether the variables belong to a layer, as far as their names tell."""
    return "/" in group.names[0]


WRITERS: dict[str, Writer] = {
    "recurrent_weight_single_step": single_step,
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
