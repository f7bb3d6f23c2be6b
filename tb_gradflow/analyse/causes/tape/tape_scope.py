"""The tape did not record the path to the loss."""

from __future__ import annotations

import ast
from collections.abc import Callable

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.tapes import (
    computed_after,
    computed_before,
    computed_in_the_request,
    computed_outside,
    forward_pass_inside,
    given_to_minimize,
    paused_block,
    reset_of_the_tape,
)
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, file_name, place_of, source_of
from tb_gradflow.analyse.words.phrases import braces
from tb_gradflow.record.schema import EAGER


def rule(suspect: Suspect) -> Verdict | None:
    """All other cases: the forward pass, or part of it, ran where the tape did not record it."""
    return Verdict("tape_scope", "error")


def computed_before_the_tape(suspect: Suspect) -> Verdict | None:
    """The loss depends on no variable at all, and the user's code computes what the tape's block reads before the block
    opens. In a loop that is recorded unchanged, the step begins where the tape opens, so what ran before is not in the
    trace."""
    topology, target, state = suspect.topology, suspect.target, suspect.state
    if (
        target < 0
        or state.entry is None
        or state.entry.outcome != "none"
        or topology.trace.variables[state.variable].computed
    ):
        return None
    places = range(len(topology.trace.variables))
    depends = suspect.measured.once(
        ("depends on a variable", target), lambda: any(topology.influences(place, target) for place in places)
    )
    if depends:
        return None
    group = Group(Verdict("tape_scope", "error"), suspect, (state,), -1)
    if computed_before(group) is None and given_to_minimize(group) is None:
        return None
    return Verdict("tape_scope", "error", NO_OP)


def computed_in_a_dataset(suspect: Suspect) -> Verdict | None:
    """The step does not read the variable, but a function of a dataset does."""
    variable = suspect.topology.trace.variables[suspect.state.variable]
    return None if variable.in_dataset is None else Verdict("tape_scope", "error", NO_OP)


def message_and_fix(group: Group) -> Text:
    """The text of the first situation that the step shows."""
    return next(text for text in (situation(group) for situation in SITUATIONS) if text is not None)


def _eager_loss(group: Group) -> Text | None:
    """It is not known what an eager loss was computed from."""
    target = group.trace.targets[group.suspect.target].op if group.suspect.target >= 0 else -1
    if target < 0 or group.trace.ops[target].type != EAGER:
        return None
    return Template(
        "{they_get} no gradient. The loss was computed eagerly, so its path is not recorded: either the loss does "
        "not depend on {them}, or something on the path blocks the gradient.",
        "Run the step inside `tf.function`, or record it with `tb_gradflow.watch`, to see where the path ends.",
    )(group)


def _in_a_dataset(group: Group) -> Text | None:
    number = group.trace.variables[group.variables[0]].in_dataset
    if number is None:
        return None
    source = group.trace.sources[number]
    return Template(
        f"{{they_get}} no gradient: a function of a dataset uses {{them}} ({file_name(source.file)}:{source.line}), "
        "and this step does not. No gradient flows into a dataset: what it gives is data.",
        "Compute this in the step, on the batch and inside the tape, instead of in the dataset.",
    )(group)


def _none_was_passed(group: Group) -> Text | None:
    if group.suspect.target < 0 or not group.trace.targets[group.suspect.target].passed:
        return None
    return Template(
        "{they_get} no gradient: `None` was passed for {them}{line}, although a differentiable path leads to the "
        "loss. The tape was not observed here: either the `None` is not the result of `tape.gradient`, or part of "
        "the forward pass ran outside the `with` block of the tape.",
        "Pass what `tape.gradient(loss, variables)` returns, with the whole forward pass inside the `with` block.",
    )(group)


def _recording_was_paused(group: Group) -> Text | None:
    if paused_block(group) is None:
        return None
    return Template(
        _NOT_RECORDED + " Part of the forward pass ran inside a `stop_recording()` block" + _read_at(group) + ".",
        "Move these lines out of that block.",
    )(group)


def _computed_before_minimize(group: Group) -> Text | None:
    if given_to_minimize(group) is None:
        return None
    return Template(
        "{they_get} no gradient: the loss was computed before `minimize` called the function that it was "
        "given{line}, and its tape records only what that function computes.",
        "Compute the loss inside that function: `minimize(lambda: ...)` with the whole expression, or a `def` that "
        "computes and returns it.",
    )(group)


def _tape_was_reset(group: Group) -> Text | None:
    if reset_of_the_tape(group) is None:
        return None
    return Template(
        "{they_get} no gradient: there is a differentiable path to the loss, but `reset()` made the tape{line} "
        "forget what it had recorded" + _read_at(group) + ".",
        "Remove the call of `reset()`, or call it before the forward pass.",
    )(group)


def _ran_before(group: Group) -> Text | None:
    before = computed_before(group) if group.suspect.state.status == "unused" else None
    if before is None:
        return None
    written, line, looped = braces(before[0]), *before[1:]
    move = f"Open the `with` block before the loop that contains `{written}`." if looped else ""
    return Template(
        "{they_get} no gradient: nothing that the tape recorded depends on a variable{line}. "
        f"`{written}` (line {line}) ran before the `with` block, where the tape records nothing.",
        move or f"Move `{written}` into the `with` block.",
    )(group)


def _ran_after(group: Group) -> Text | None:
    after = computed_after(group)
    if after is None or _read_at(group):
        return None
    written = braces(after[0])
    return Template(
        _NOT_RECORDED.removesuffix(".") + f": `{written}` (line {after[1]}) ran after the `with` block.",
        f"Move `{written}` into the `with` block.",
    )(group)


def _computed_in_the_request(group: Group) -> Text | None:
    loss = computed_in_the_request(group)
    if loss is None or _read_at(group):
        return None
    written = braces(ast.unparse(loss))
    return Template(
        _NOT_RECORDED.removesuffix(".")
        + f": `{written}` is computed in the call of `gradient`, after the `with` block.",
        f"Compute it in the `with` block, `loss = {written}`, and request the gradient of `loss`.",
    )(group)


def _is_of_a_gradient(group: Group) -> Text | None:
    """The log of a program without functions has only the lines of the request."""
    target = group.trace.targets[group.suspect.target] if group.suspect.target >= 0 else None
    if target is None or target.op < 0 or not group.trace.ops[target.op].backward or _read_at(group):
        return None
    slope = f"`{target.name}`" if target.name.isidentifier() else "the first gradient"
    return Template(
        _NOT_RECORDED + f" {slope[0].upper()}{slope[1:]} is a gradient itself, which a tape only records if it is "
        "requested inside its `with` block.",
        f"Request {slope} inside the `with` block: from an inner tape, or from this one if it is persistent.",
    )(group)


def _ran_outside(group: Group) -> Text:
    """All other steps."""
    return Template(
        _NOT_RECORDED + " The forward pass, or part of it, ran outside the `with` block" + _read_at(group) + ".",
        _move(group),
    )(group)


_NOT_RECORDED = (
    "{they_get} no gradient: there is a differentiable path to the loss, but the tape did not record it{line}."
)

SITUATIONS: tuple[Callable[[Group], Text | None], ...] = (
    _eager_loss,
    _in_a_dataset,
    _none_was_passed,
    _recording_was_paused,
    _computed_before_minimize,
    _tape_was_reset,
    _ran_before,
    _ran_after,
    _computed_in_the_request,
    _is_of_a_gradient,
    _ran_outside,
)
"""In the order in which they are looked for; the last one is always the case."""


def _move(group: Group) -> str:
    """What to change, with the user's own line if that is a one-line statement: a template."""
    if outside := computed_outside(group):
        code, line, is_read = braces(outside[0]), *outside[1:]
        if is_read:
            return f"Move `{code}` into the `with` block."
        return (
            f"Open the `with` block before `{code}` (line {line}), so that the tape also records what leads from there "
            "to the loss."
        )
    return (
        "Call the model inside the block: `with tf.GradientTape() as tape: loss = loss_fn(y, model(x, training=True))`."
    )


def _read_at(group: Group) -> str:
    """Where the step reads a variable that the tape never saw; empty if the tape saw it, if it is a tensor, of which
    that is not known, or if no line of the user's code reads it."""
    state, topology = group.suspect.state, group.suspect.topology
    if state.entry is None or state.entry.watched or group.trace.variables[state.variable].computed:
        return ""
    influence = topology.influence(state.target).hops
    readers = [op for op in topology.readers[state.variable] if influence[op] >= 0]
    return next((place_of(group.trace, op) for op in readers if source_of(group.trace, op) is not None), "")


CAUSE = Cause(
    name="tape_scope",
    meaning="the tape watched none of the variables, or watched this one but did not record the path to the loss",
    severity="error",
    fix="call the model inside the `with` block",
    text=message_and_fix,
    plight="no gradient from one request",
    without_op="the tape{line} did not record the path to the loss",
    shows_request=True,
    told_at_once=True,
    edits=(forward_pass_inside,),
)
