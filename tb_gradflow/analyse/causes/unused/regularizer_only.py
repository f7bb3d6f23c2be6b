"""All of the gradient comes from a penalty on the variable."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.unused.siblings import siblings_of
from tb_gradflow.analyse.evidence.penalties import is_only_added, is_penalty_alone
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.analyse.words.phrases import in_layer


def rule(suspect: Suspect) -> Verdict | None:
    """A gradient arrives, and all of it from the penalty on the variable's own size.

    Asked of connected variables too; an unused variable beside one of these shares its story.
    """
    topology, state = suspect.topology, suspect.state
    if state.target < 0:
        return None
    if state.status == "unused":
        return Verdict("regularizer_only", "warning") if _has_penalised_sibling(suspect) else None
    if not is_penalty_alone(topology, state.variable, state.target):
        return None
    return Verdict("regularizer_only", "info" if is_only_added(topology, state.variable) else "warning")


def _has_penalised_sibling(suspect: Suspect) -> bool:
    return any(is_penalty_alone(suspect.topology, index, suspect.target) for index in siblings_of(suspect))


def message_and_fix(group: Group) -> Text:
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


CAUSE = Cause(
    name="regularizer_only",
    meaning="all of the gradient comes from a term of the loss in which no data take part, a weight decay or any other "
    "penalty on this variable. Where the data's own way is cut, the cut is told. Unused companions in the layer belong "
    "to the story",
    severity="warning; info where it is merely added to the loss",
    fix="use the layer's output",
    text=message_and_fix,
    told_at_once=True,
)
