"""`tape.gradient` was not given the variable."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.tapes import requested_too, wider_request
from tb_gradflow.analyse.evidence.requests import is_by_tape, listed_in_vain, nobody_asked, requested_with
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, quoted
from tb_gradflow.analyse.words.phrases import braces, in_layer
from tb_gradflow.record.schema import Trace


def rule(suspect: Suspect) -> Verdict | None:
    """A trainable variable that `tape.gradient` was not given.

    A variable that the step changes anyway is trained in another way, such as by the gradient of a perturbed copy. If
    the step raised while it was traced, it is not known what it would have requested next. An error if the list is
    empty.
    """
    if not nobody_asked(suspect):
        return None
    if suspect.measured.moved(suspect.state.variable) or ended_early(suspect.measured):
        return Verdict("not_in_gradient_sources", "info")
    return Verdict("not_in_gradient_sources", "error" if asked_for_nothing(suspect.topology.trace) else "warning")


def others_listed(suspect: Suspect) -> Verdict | None:
    """`tape.gradient` was given variables that this loss cannot train, and that another loss trains, in place of those
    that it depends on: a discriminator's loss with the generator's variables."""
    variable = suspect.topology.trace.variables[suspect.state.variable]
    is_missed = nobody_asked(suspect) and variable.trainable and not suspect.measured.moved(suspect.state.variable)
    if not is_missed or not listed_in_vain(suspect.topology, suspect.target):
        return None
    return Verdict("not_in_gradient_sources", "error")


def asked_for_nothing(trace: Trace) -> bool:
    """Whether the list passed to `tape.gradient` is empty in all calls. Older logs do not have its length."""
    counts = [target.sources for target in trace.targets]
    empty = all(entry.outcome == "not_asked" for entry in trace.variable_gradients)
    return all(count == 0 for count in counts) or (empty and all(count is None for count in counts))


def ended_early(measured: Measured) -> bool:
    """Whether the step may have raised before its end: more requests may have been meant to follow."""
    trace = measured.topology.trace
    raised = any(entry.outcome == "error" for entry in trace.variable_gradients)
    return measured.gradients is None and (raised or not trace.failure)


# Up to this many layers are named one by one.
_FEW = 3


_BY_NAME = (
    " If you choose variables by their names: in Keras 3 `v.name` is only the last part, such as `kernel`; the whole "
    "name is `v.path`."
)


def message_and_fix(group: Group) -> Text:
    owner = group.names[0].rpartition("/")[0] + "/"
    whole = all(
        index in group.variables
        for index, variable in enumerate(group.trace.variables)
        if variable.trainable and variable.name.startswith(owner)
    )
    quiet = "set `{attribute}.trainable = False`" if whole else 'pass `expected=["{pattern}"]` to the recorder'
    if len({name.rpartition("/")[0] for name in group.names}) > _FEW:
        quiet = "set `trainable = False` for each of their layers"
    if not in_layer(group):
        quiet = "create {them} with `tf.Variable(..., trainable=False)`"
    ask = "Pass all of them, `tape.gradient(loss, model.trainable_variables)`"
    if (wider := wider_request(group)) is not None:
        ask = braces(f"Pass all of them, `{wider}`")
    if len(group.trace.targets) > 1:
        ask = "Add {them} to the sources of the tape whose loss should train {them}, `tape.gradient(loss, [...])`"
    if ended_early(group.suspect.measured):
        return Template(
            "{they_are} used in the loss, but `tape.gradient`{line} had not been given {them} when the step failed "
            "with an error.",
            f"Fix that error first. If no later call in the step requests the gradient: {ask[0].lower()}{ask[1:]}.",
        )(group)
    if listed := listed_in_vain(group.suspect.topology, group.suspect.target):
        others = quoted([group.trace.variables[each].name for each in listed])
        return Template(
            "{they_are} used in the loss, but `tape.gradient`{line} was given " + others + " instead, to which no "
            "gradient of this loss leads. Another loss trains those.",
            "Request the gradient of this loss for {names}, and apply it to them.",
        )(group)
    if group.verdict.severity == "error":
        return Template(
            "{they_are} used in the loss, but the list of sources given to `tape.gradient`{line} is empty.",
            "Check that list. A model has no trainable variables before it is built or while `trainable = False`, and "
            "a list read at that time stays empty: read it in the step, `tape.gradient(loss, "
            "model.trainable_variables)`." + (_BY_NAME if any("/" in name for name in group.names) else ""),
        )(group)
    asked = requested_with(group.trace)
    if not is_by_tape(group.trace):
        ask = "Add {them} to " + {"minimize": "`var_list`", "tf.gradients": "`xs`"}.get(asked, "what is applied too")
    return Template(
        "{they_are} used in the loss, but `" + asked + "`{line} " + _SAID[is_by_tape(group.trace)],
        f"{ask}. If this is intended, {quiet}.",
    )(group)


# A run of a session may compute some of the gradients that were requested.
_SAID = {
    True: "was not given {them}.",
    False: "was not given {them}, or this run does not compute {their} gradient.",
}


CAUSE = Cause(
    name="not_in_gradient_sources",
    meaning="the variable is trainable, but no `tape.gradient` call was given it; or the list of sources is empty, so "
    "nothing trains",
    severity="warning; error for an empty list, and for one that names what another loss trains instead",
    fix="pass all trainable variables, or freeze it",
    text=message_and_fix,
    without_op="tape.gradient{line} was not given {them}",
    shows_request=True,
    told_at_once=True,
    edits=(requested_too,),
)
