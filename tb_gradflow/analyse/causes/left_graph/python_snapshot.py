"""The loss uses a tensor that was computed from the variable before the step."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.variables import (
    compiled_later,
    computed_by_each_call,
    computed_in_the_step,
    computed_where_it_is_read,
)
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.user_code.kept_values import kept_from, kept_in_step
from tb_gradflow.analyse.words.fields import Template, fields
from tb_gradflow.analyse.words.names import Group, Text, place_of, source_of
from tb_gradflow.record.schema import COMPILED_EARLY, SNAPSHOT


def rule(suspect: Suspect) -> Verdict | None:
    """A tensor that was computed from the variable before the step replaces it in the step."""
    return Verdict("python_snapshot", "error") if suspect.op.type == SNAPSHOT else None


def kept_before(suspect: Suspect) -> Verdict | None:
    """The step does not read the variable. A function that computes the loss reads what the user's code computed from
    it where it was created."""
    kept = kept_in_step(suspect, suspect.state.variable)
    return Verdict("python_snapshot", "error", NO_OP) if kept is not None else None


def message_and_fix(group: Group) -> Text:
    names = fields(group)
    if group.op is None or group.op.type != SNAPSHOT:
        found = [kept for each in group.variables if (kept := kept_in_step(group.suspect, each)) is not None]
        values = dict.fromkeys(
            (f"`{value.name}` (line {read_at})", f"`{value.name}`", value.line) for value, read_at in found
        )
        uses, names_kept, lines = (" and ".join(map(str, dict.fromkeys(each))) for each in zip(*values, strict=True))
        was, does = ("which was", "does") if len(values) == 1 else ("which were", "do")
        return Template(
            f"{{they_get}} no gradient: the step uses {uses}, {was} computed from {{them}} once, before the step (line "
            f"{lines}), and {does} not change with {{them}}.",
            f"Compute {names_kept} from {{them}} inside the step, with TensorFlow: in `call`, or in the loss function, "
            "under the tape.",
        )(group)
    # A fact about one of them need not hold for the others.
    made_by = {group.trace.ops[culprit].api for culprit in (group.culprit, *group.culprits.values()) if culprit >= 0}
    api = made_by.pop() if len(made_by) == 1 else None
    # A copy is what the step uses, not how it came about: a `SparseTensor` of the variable's value, for one.
    api = None if api == "tf.identity" else api
    how = f", by `{api}`" if api else ""
    place = place_of(group.trace, group.culprit)
    if api == COMPILED_EARLY:
        return Template(
            "{they_get} no gradient: the `@tf.function` around this line{place} was compiled while Keras built the "
            "model, before there were values for {them}. It computes with copies of {their} initial values, and does "
            "not read {them}.",
            "Remove `@tf.function` there: `fit` compiles the whole step, and in a loop of your own it belongs to the "
            "function that takes the gradient.",
        )(group)
    message = (
        f"{names['they_get']} no gradient: the loss uses a tensor{place} that was computed from {names['them']} once, "
        f"before the step{_line_of(group)}{how}, and does not change with {names['them']}."
    )
    again = f"`{api}({names['variable']})`" if api and api.startswith("tf.") else "everything derived from it"
    return Text(
        message,
        f"Keep the variable, not the tensor, and compute {again} inside the step: in `call`, or in the loss function, "
        "under the tape.",
    )


def _line_of(group: Group) -> str:
    """The line that computed the tensor which the culprit's line reads, in brackets; empty if it is not known."""
    source = source_of(group.trace, group.culprit)
    if source is None:
        return ""
    for number in group.variables:
        for kept in kept_from(group.suspect.topology.trace, number):
            if kept.file == source.file and any(line == source.line for line, _ in kept.reads):
                return f" (line {kept.line})"
    return ""


CAUSE = Cause(
    name="python_snapshot",
    meaning="the step does not read the variable, but a tensor that was computed from it before the step: `tf.exp` of "
    "it or another known function, any monotone function of many elements, or a gathered or stacked part; what the "
    "user's code computed from it where it was created; or its initial value, in a `@tf.function` that was compiled "
    "while Keras built the model",
    severity="error",
    fix="compute it inside the step",
    text=message_and_fix,
    verb="blocks it",
    subject="a tensor from before the step",
    edits=(compiled_later, computed_in_the_step, computed_where_it_is_read, computed_by_each_call),
)
