"""The recurrent weights of a layer that sees one time step."""

from __future__ import annotations

import re

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.unused.siblings import siblings_of
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.op_sets import scopes_of
from tb_gradflow.analyse.words.fields import SIZE, Template
from tb_gradflow.analyse.words.names import Group, Text

_STATE_WEIGHTS = ("recurrent", "weight_hh", "w_hh")
_NEAR = 12


def rule(suspect: Suspect) -> Verdict | None:
    """The recurrent weights of a layer that sees one time step: they multiply an initial state of zeros, or are not
    used at all. Outside of Keras layers, the other weights must learn; otherwise something else is wrong."""
    name = suspect.topology.trace.variables[suspect.state.variable].name
    own = name.rpartition("/")[2]
    if not any(word in own for word in _STATE_WEIGHTS) or not _others_learn(suspect):
        return None
    return Verdict("recurrent_weight_single_step", "warning", min(_products(suspect), default=suspect.culprit))


def _products(suspect: Suspect) -> set[int]:
    """Where the weights are multiplied with a state: once for each call of the layer."""
    found: set[int] = set()
    for reader in suspect.topology.readers[suspect.state.variable]:
        direct = {op for op in suspect.topology.onward(reader) if suspect.type_of(op) in PRODUCTS}
        found |= direct or {_first_product(suspect, reader)} - {-1}
    return found


def _first_product(suspect: Suspect, reader: int) -> int:
    """The product that a weight goes into, split into gates or not; -1 if it is not near."""
    queue = list(suspect.topology.onward(reader))
    for op in queue[:_NEAR]:
        if suspect.type_of(op) in PRODUCTS:
            return op
        queue.extend(suspect.topology.onward(op))
    return next((op for op in queue[:_NEAR] if suspect.type_of(op) in PRODUCTS), -1)


def _others_learn(suspect: Suspect) -> bool:
    """Whether the other weights of the layer learn, or all others where it is alone in its layer."""
    variables, own = suspect.topology.trace.variables, suspect.state.variable
    others = [place for place, each in enumerate(variables) if place != own and each.trainable]
    beside = [place for place in siblings_of(suspect) if place != own and variables[place].trainable] or others
    return not beside or all(suspect.measured.learns(place) for place in beside)


def message_and_fix(group: Group) -> Text:
    """For a layer that sees one step; or for the half of a `Bidirectional` that has seen only one step at the position
    that the loss uses."""
    if all(_BACKWARD.search(name) for name in group.names):
        return Template(
            SIZE + "the loss uses only the first step of the backward direction, at the end of the "
            "sequence, where the recurrent weights multiply an initial state of zeros.",
            "Use the last state of both directions, `return_sequences=False`, instead of the last step of the output "
            "of `return_sequences=True`.",
        )(group)
    if len(_products(group.suspect)) > 1:
        return Template(
            SIZE + "the layer is called several times, each time with a state of zeros, which the recurrent weights "
            "multiply.",
            "If these calls are the time steps of a sequence, pass on the state: `output, state = cell(x, state)`. "
            "Otherwise use a `Dense` layer.",
        )(group)
    fix = "Feed sequences of at least two steps, shaped `[batch, time, features]`, or use a `Dense` layer."
    if _is_cell_alone(group):
        fix = (
            "If the cell is called once for each time step, pass on the state: `output, state = cell(x, state)`. "
            "Otherwise use a `Dense` layer."
        )
    return Template(
        SIZE + "the recurrent layer sees only one time step, so its recurrent weights multiply an "
        "initial state of zeros.",
        fix,
    )(group)


def _is_cell_alone(group: Group) -> bool:
    """Whether the user's code calls a cell, and no recurrent layer does."""
    types = {layer.scope: layer.type for layer in group.trace.layers}
    scopes = scopes_of(group.trace.ops[group.culprit].name) if group.culprit >= 0 else ()
    around = [types[scope] for scope in scopes if scope in types]
    return any(each.endswith("Cell") for each in around) and not any(each in _OVER_TIME for each in around)


_OVER_TIME = frozenset({"RNN", "SimpleRNN", "LSTM", "GRU", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"})

# The name that `Bidirectional` gives its second half.
_BACKWARD = re.compile(r"(?:^|/)backward_")


CAUSE = Cause(
    name="recurrent_weight_single_step",
    meaning="the gradient of the recurrent weights of a layer is zero: with one time step they multiply an initial "
    "state of zeros",
    severity="warning",
    fix="longer sequences",
    text=message_and_fix,
)
