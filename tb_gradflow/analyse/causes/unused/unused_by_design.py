"""A part that published models contain without using it."""

from __future__ import annotations

import re

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.dead_terms import term_in_vain
from tb_gradflow.analyse.graph.op_sets import SUMS_OF_TWO, scopes_of
from tb_gradflow.analyse.graph.same_named import twin_in_use
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.user_code.skipped_branches import condition_of
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.analyse.words.phrases import braces

# Parts that published models contain for another task; unused in this one by design.
_IDLE_BY_DESIGN = ("pooler", "projector", "projection_head", "proj_head", "lm_head", "nsp_head", "mlm_head")

_MASKED = ("mask_token", "mask_emb", "masked_spec_embed")
_NUMBERS = re.compile(r"[0-9]+")


def rule(suspect: Suspect) -> Verdict | None:
    """A pooler or projection head that is called but not used, or the embedding of masked positions when none is
    masked: known to be harmless."""
    if suspect.culprit < 0 and (method := _elsewhere(suspect)):
        why = f"only the method `{method}` of the model uses {{them}}, and this step does not call it"
        return _alone(why, "the method")
    if suspect.culprit < 0 and (condition := _skipped(suspect)):
        written = braces(" ".join(condition.split()))
        why = f"the model uses {{them}} only where its code tests `{written}`, and this step runs the other branch"
        return _alone(why, "that branch")
    name = suspect.topology.trace.variables[suspect.state.variable].name.lower()
    named = any(word in name for word in _IDLE_BY_DESIGN) and not _is_missed(suspect)
    idle = named or _is_end_of_stream(suspect) or (suspect.culprit < 0 and stands_for_masked(name))
    return Verdict("unused_by_design", "info") if idle else None


def _alone(why: str, what: str) -> Verdict:
    text = Template(
        f"{{they_are}} unused: {why}. This is harmless if {what} belongs to another phase of the training.",
        'Nothing to fix in that case; `expected=["{pattern}"]` silences this.',
    )
    return Verdict("unused_by_design", "info", text=text)


def _is_missed(suspect: Suspect) -> bool:
    """Whether a loss is computed with a head, so that it is not unused by design, or with its copy in its place."""
    topology, variable = suspect.topology, suspect.state.variable
    return term_in_vain(topology, variable) >= 0 or bool(twin_in_use(topology, variable, suspect.target))


def _elsewhere(suspect: Suspect) -> str:
    """The method of the model that uses the variable, if the training step does not; empty if there is none. `call` is
    no other task: it computes what the model is for."""
    method = suspect.topology.trace.variables[suspect.state.variable].elsewhere
    return "" if method == "call" else method


def _skipped(suspect: Suspect) -> str:
    """The condition under which alone the model uses the variable, if this step does not meet it."""
    topology, number = suspect.topology, suspect.state.variable
    name = topology.trace.variables[number].name
    return "" if topology.readers[number] else condition_of(topology.trace, name)


def stands_for_masked(name: str) -> bool:
    """Whether a weight has the name of an embedding that replaces masked words, patches or frames in pre-training."""
    return any(word in name.rpartition("/")[2].lower() for word in _MASKED)


def _is_end_of_stream(suspect: Suspect) -> bool:
    """The output of the last of several equal blocks that only the next block would use. The blocks before it have the
    same part, and there it trains; and the rest of this block trains.
    """
    topology, target = suspect.topology, suspect.target
    if target < 0 or suspect.culprit < 0 or suspect.op.type not in SUMS_OF_TWO:
        return False
    influence = topology.influence(target).hops
    if not any(edge.op >= 0 and influence[edge.op] >= 0 for edge in suspect.op.inputs):
        return False
    name = topology.trace.variables[suspect.state.variable].name
    block = "/".join(name.split("/")[:-2])
    parts, blocks = suspect.measured.once(("trains", target), lambda: _that_train(topology, target))
    return _NUMBERS.sub("#", name) in parts and block in blocks


def _that_train(topology: Topology, target: int) -> tuple[set[str], set[str]]:
    """The names, without numbers, of the variables that a gradient reaches, and their scopes."""
    names = [each.name for place, each in enumerate(topology.trace.variables) if topology.receives(place, target)]
    return {_NUMBERS.sub("#", name) for name in names}, {scope for name in names for scope in scopes_of(name)}


def message_and_fix(group: Group) -> Text:
    if group.culprit < 0 and all(map(stands_for_masked, group.names)):
        return Template(
            "{they_are} unused: nothing is masked in this step. This is harmless if masking belongs to another phase "
            "of the training.",
            f'Nothing to fix in that case; `expected=["{group.names[0]}"]` silences this.',
        )(group)
    return Template(
        "{they_are} unused: this loss does not use the output of {layer}. This is harmless.",
        'Nothing to fix; `{attribute}.trainable = False` or `expected=["{pattern}"]` silences this.',
    )(group)


CAUSE = Cause(
    name="unused_by_design",
    meaning="no path leads to the loss from a part that published models contain for other uses, recognised by its "
    "name: a pooler, a projection head; or from variables that are used only by a method which the step does not call, "
    "or only in a branch of the model's code that it does not run; or from the output of the last of several equal "
    "blocks that only the next block would use",
    severity="info",
    fix="nothing",
    text=message_and_fix,
)
