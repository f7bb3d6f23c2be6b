"""All of the gradient comes from a penalty on the variable."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.unused.siblings import siblings_of
from tb_gradflow.analyse.evidence.penalties import is_only_added, is_penalty_alone
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.analyse.words.phrases import in_layer
from tb_gradflow.record.schema import COMPILED_EARLY, SNAPSHOT


def rule(suspect: Suspect) -> Verdict | None:
    """A gradient arrives, but only from the penalty on the variable itself. Applied to connected variables too; an
    unused variable of the same layer is included.
    """
    topology, state = suspect.topology, suspect.state
    if state.target < 0:
        return None
    if state.status == "unused":
        return Verdict("regularizer_only", "warning") if _has_penalised_sibling(suspect) else None
    if not is_penalty_alone(topology, state.variable, state.target):
        return None
    return Verdict("regularizer_only", "info" if is_only_added(topology, state.variable) else "warning")


def compiled_early(suspect: Suspect) -> Verdict | None:
    """What the layer computes is in a function that was compiled before there were values for its variables, as others
    of that layer show: it does not read this one either, only its penalty does."""
    topology, state = suspect.topology, suspect.state
    if state.target < 0 or not is_penalty_alone(topology, state.variable, state.target):
        return None
    ops = topology.trace.ops
    readers = [reader for each in siblings_of(suspect) for reader in topology.readers[each]]
    users = {user for reader in readers for user, _ in topology.consumers[reader]}
    early = next((op for op in sorted(users) if (ops[op].type, ops[op].api) == (SNAPSHOT, COMPILED_EARLY)), None)
    return Verdict("python_snapshot", "error", early) if early is not None else None


def _has_penalised_sibling(suspect: Suspect) -> bool:
    return any(is_penalty_alone(suspect.topology, index, suspect.target) for index in siblings_of(suspect))


def message_and_fix(group: Group) -> Text:
    if group.verdict.severity == "info":
        return Template(
            "{they_are} only added to the loss: the gradient does not depend on the data, and is the same in every "
            "step.",
            "Nothing to fix if this is intended. Otherwise, use {names} in the output that is compared with the data.",
        )(group)
    if not in_layer(group):
        return Template(
            "{they_get} no gradient except from a penalty: the part of the loss that depends on the data does not use "
            "{them}.",
            "Use {names} in the output that is compared with the data, or remove {them}.",
        )(group)
    return Template(
        "{they_get} no gradient except from the weight regularizer: the output of {layer} never reaches the loss.",
        "Use the output of {layer} on the path to the loss, for example `x = {attribute}(x)`, or remove the layer.",
    )(group)


CAUSE = Cause(
    name="regularizer_only",
    meaning="the whole gradient comes from a term of the loss that does not depend on the data: a weight decay or "
    "another penalty on this variable. Where the path of the data is cut, the cut is reported instead. Unused "
    "variables of the same layer are included",
    severity="warning; info where it is merely added to the loss",
    fix="use the layer's output",
    text=message_and_fix,
    plight="only the gradient of a penalty",
    told_at_once=True,
)
