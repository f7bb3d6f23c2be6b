"""The tape watches other sources, but not this one."""

from __future__ import annotations

import re

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.tapes import ignores_variables, watched_instead, watching
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.record.schema import Trace


def rule(suspect: Suspect) -> Verdict | None:
    """The tape watched only selected variables, and not this one: `watch_accessed_variables=False`."""
    entry = suspect.state.entry
    if entry is None or entry.watched or suspect.topology.trace.targets[entry.target].automatic:
        return None
    others = any(other.watched and other.target == entry.target for other in suspect.topology.trace.variable_gradients)
    return Verdict("tape_not_watching", "error") if others or ignores_variables(suspect) else None


def tensor_not_watched(suspect: Suspect) -> Verdict | None:
    """A tape does not follow a tensor that was created before its block."""
    computed = suspect.topology.trace.variables[suspect.state.variable].computed
    return Verdict("tape_not_watching", "error") if computed and not _is_watched(suspect) else None


def _is_watched(suspect: Suspect) -> bool:
    """Whether the same tape gave another gradient for a tensor."""
    trace = suspect.topology.trace
    of_same = [each for each in trace.variable_gradients if each.variable == suspect.state.variable]
    given = [each.target for each in of_same if each.outcome == "value" and each.target != suspect.target]
    return any(_tapes(trace, target) == _tapes(trace, suspect.target) for target in given)


def message_and_fix(group: Group) -> Text:
    """A tensor is watched automatically only if it is computed inside the tape's block from watched values."""
    if (instead := watched_instead(group)) is not None:
        return Template(
            "{they_get} no gradient: a gradient was requested for {them}{line}, but nothing in the block of the tape "
            f"uses {{them}}. What the tape watches there is `{instead[1]}`.",
            f"Request the gradient for `{instead[1]}`.",
        )(group)
    if _is_data(group):
        return Template(
            "{they_get} no gradient: a gradient was requested for {them}{line}, but the tape does not watch {them}. A "
            "tape automatically watches only trainable variables and what is computed from them.",
            f"Add {_watch(group)} at the start of the `with` block.",
        )(group)
    if group.trace.variables[group.variables[0]].computed:
        return Template(
            "{they_get} no gradient: there is a differentiable path to the loss, but the tape did not record "
            "it{line}: {names} and what is computed from {them} must be created inside the `with` block.",
            f"Create {{names}} inside the `with` block, or add {_watch(group)} there before the loss is computed.",
        )(group)
    return Template(
        "{they_get} no gradient: there is a differentiable path to the loss, but the tape does not watch {them}{line}.",
        "Remove `watch_accessed_variables=False`, or watch them as well: "
        "`tape.watch([v.value for v in model.trainable_variables])`.",
    )(group)


# A request to a tape, with the tape's name before it.
_ASKED = re.compile(r"(?<![\w.])([A-Za-z_][\w.]*)\.(?:gradient|jacobian|batch_jacobian)\(")


def _tapes(trace: Trace, target: int) -> list[str]:
    """The names of the tapes in the line that requests the gradient of a target."""
    source = trace.targets[target].source if target >= 0 else None
    return _ASKED.findall(trace.sources[source].code) if source is not None else []


def _watch(group: Group) -> str:
    """The call that makes the user's tape watch a tensor: a template."""
    tapes = _tapes(group.trace, group.suspect.target)
    if len(tapes) == 1:
        return f"`{tapes[0]}.watch({{variable}})`"
    return "`tape.watch({variable})` (with the name of your tape)"


def _is_data(group: Group) -> bool:
    """Whether the tensors are arguments of the step, or constants in it."""
    readers = [op for variable in group.variables for op in group.suspect.topology.readers[variable]]
    return bool(readers) and all(group.trace.ops[op].type in ("Placeholder", "Const") for op in readers)


CAUSE = Cause(
    name="tape_not_watching",
    meaning="the tape watched other variables but not this one; or a gradient was requested for a tensor that was "
    "created before the tape's block, or for data",
    severity="error",
    fix="remove `watch_accessed_variables=False`; create the tensor inside the block; `tape.watch(x)`",
    text=message_and_fix,
    without_op="the tape{line} does not watch {them}",
    shows_request=True,
    told_at_once=True,
    edits=(watching,),
)
