"""The values that templates are filled with: one dictionary per group of variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tb_gradflow.analyse.words.code import bracketed
from tb_gradflow.analyse.words.names import (
    Group,
    Text,
    blamed,
    call_of,
    called,
    file_name,
    layer_of,
    made_by,
    namespace,
    place_of,
    quoted,
    short,
    subject,
)
from tb_gradflow.record.expected import patterns_for

# How messages begin.
ZERO = "{they_get} {zero}: "
SIZE = "{they_get} {size}: "
BARE_SIZE = "{they_get} {bare_size}: "


_PLACE = re.compile(r"\{\{|\}\}|\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Template:
    """Message and fix with places for the names of `fields`."""

    message: str
    fix: str

    def __call__(self, group: Group) -> Text:
        names = fields(group)
        return Text(filled(self.message, names), filled(self.fix, names))


def filled(template: str, names: Mapping[str, str]) -> str:
    """The template with its names replaced. Other braces stay, because the user's code may contain some."""

    def stands_for(found: re.Match[str]) -> str:
        return found[0][0] if found[1] is None else names.get(found[1], found[0])

    return _PLACE.sub(stands_for, template)


def fields(group: Group) -> dict[str, str]:
    """The names that a template may use.

    they_get: The variables and "get", in number; they_are, they_have: likewise; they_have_flag, is_given: the
        verbs alone.
    them: "it" or "them"; their: "its" or "their".
    op: The culprit with its place; place: that alone; fn: without; kind: its op type.
    whole, x, bx: The user's call of it; its argument; the argument in brackets if an operator needs them.
    head: The function's name in that call.
    behind: The type of the softmax or sigmoid that computes the input of the culprit; empty if none does.
    lib: The module from which the user takes such functions.
    variable: The first variable's own name; layer: its layer, quoted; attribute: its layer, as code may call it.
    pattern: For `expected`. line: Where the gradient was requested, in brackets.
    size: How large the gradient is, in words; bare_size: without a word on the loss; zero: the same for one that is
        exactly zero.
    elements: In how many of their elements the gradient is zero, if it is in some.
    plight: What is not finite: the gradient of the variables, or the loss alone.
    """
    return {**_of_variables(group), **_of_culprit(group)}


def _of_variables(group: Group) -> dict[str, str]:
    return {
        "names": quoted(group.names),
        "they_get": subject(group, "gets", "get"),
        "they_are": subject(group, "is", "are"),
        "they_have": subject(group, "has", "have"),
        "they_have_flag": "it has" if len(group.variables) == 1 else "they have",
        "is_given": "is given" if len(group.variables) == 1 else "are given",
        "them": "it" if len(group.variables) == 1 else "them",
        "their": "its" if len(group.variables) == 1 else "their",
        "count": str(len(group.variables)),
        "variable": short(group),
        "layer": _layer(group),
        "attribute": _attribute(group),
        "pattern": _pattern(group),
        "line": _line(group),
        "size": _size(group),
        "elements": _elements(group),
        "bare_size": _size(group).removesuffix(_LEARNED),
        "zero": _size(group) if group.suspect.state.status == "vanishing" else _beside_penalty(group) or _SIZES["zero"],
        "plight": _plight(group),
    }


def _of_culprit(group: Group) -> dict[str, str]:
    call, op = call_of(group), group.op
    name = called(group.trace, group.culprit).strip("`") if op is not None else "f"
    function = name if name.replace(".", "").replace("_", "").isalnum() else "f"
    x = call.subject if call else "x"
    return {
        "op": blamed(group) if op is not None else "an op",
        "fn": f"`{name}`",
        "kind": op.type if op is not None else "",
        "place": place_of(group.trace, group.culprit) if op is not None else "",
        "whole": call.text if call else f"{function}(x)",
        "x": x,
        "bx": bracketed(x),
        "head": call.head if call and not call.is_operator else function,
        "lib": namespace(group),
        "behind": made_by(group, ("Softmax", "Sigmoid")),
    }


def _layer(group: Group) -> str:
    owners = sorted({_owner(name) for name in group.names} - {""})
    inside = layer_of(group.trace, group.culprit) if group.culprit >= 0 else ""
    return quoted(owners, "layers") or (f"`{inside}`" if inside else quoted(group.names))


def _owner(name: str) -> str:
    """The layer of a variable that the user knows: a recurrent layer, not the cell in it."""
    layer = name.rpartition("/")[0]
    around, _, last = layer.rpartition("/")
    return around if around and _CELL.fullmatch(last) else layer


# The names that Keras gives to layers that it creates itself.
_CELL = re.compile(r"(?:lstm|gru|simple_rnn|conv_lstm)_cell(?:_\d+)?")


def _attribute(group: Group) -> str:
    owner = _owner(group.names[0]).rpartition("/")[2]
    return owner if owner.isidentifier() else "layer"


def _pattern(group: Group) -> str:
    known = set(group.names)
    others = [each.name for each in group.trace.variables if each.trainable and each.name not in known]
    return '", "'.join(patterns_for(group.names, others))


def _line(group: Group) -> str:
    trace, target = group.trace, group.suspect.target
    place = trace.targets[target].source if target >= 0 else None
    return f" ({file_name(trace.sources[place].file)}:{trace.sources[place].line})" if place is not None else ""


def _size(group: Group) -> str:
    status = group.suspect.state.status
    if beside := _beside_penalty(group):
        return beside
    if any(state.zeros for state in group.states):
        return f"{_SIZES['zero']} {_elements(group)}"
    if status in _SIZES:
        return _SIZES[status]
    if group.suspect.state.beside or (status == "connected" and group.is_cut and group.verdict.severity == "info"):
        return FROM_ONE_TERM
    if status == "connected" and group.is_cut:
        return _BUT_FOR_PENALTY
    sizes = [state.gradient.max_abs for state in group.states if state.gradient is not None]
    if not sizes:
        return "a gradient"
    small = max(sizes) < _SMALL and group.suspect.measured.is_learned(group.suspect.target)
    learned = _LEARNED if small else ""
    digits, exponent = f"{max(sizes):.1e}".split("e")
    at_most = "up to" if status == "exploding" else "at most"
    return f"a gradient of {at_most} {digits}e{int(exponent)}{learned}"


def share_of_zeros(group: Group) -> float:
    """The share of the elements of all variables of the group that get a gradient of exactly zero; or, if only a part
    of these is meant, of that part."""
    sizes = [prod(group.trace.variables[state.variable].shape or ()) for state in group.states]
    measured = [state.gradient.zero_fraction if state.gradient is not None else 0.0 for state in group.states]
    shares = [state.zeros or zeros for state, zeros in zip(group.states, measured, strict=True)]
    return sum(size * share for size, share in zip(sizes, shares, strict=True)) / max(sum(sizes), 1)


def _elements(group: Group) -> str:
    """Which elements get none, of a group of variables in which only some do."""
    share = share_of_zeros(group)
    if len(group.states) != 1:
        return f"in {share:.0%} of their elements"
    size = prod(group.trace.variables[group.states[0].variable].shape or ())
    return f"in {round(share * size)} of its {size} elements"


def _beside_penalty(group: Group) -> str:
    """What variables get if some of them get only the gradient of a penalty; empty if none does."""
    penalised = [state.penalised for state in group.states]
    if all(penalised):
        return _BUT_FOR_PENALTY
    return "no gradient, or only that of a penalty" if any(penalised) else ""


def _plight(group: Group) -> str:
    suspect = group.suspect
    if suspect.state.status in ("nan", "inf") or suspect.measured.loss_is_finite(suspect.target):
        return f"{subject(group, 'gets', 'get')} {_size(group)}"
    loss = "NaN" if suspect.measured.loss_is_nan(suspect.target) else "infinite"
    return f"The loss is {loss}, but no gradient shows it"


_SMALL = 1e-4
_LEARNED = " (the loss is close to zero as well)"

FROM_ONE_TERM = "no gradient from one term of the loss"

_BUT_FOR_PENALTY = "no gradient except from a penalty"

_SIZES = {
    "disconnected": "no gradient",
    "unused": "no gradient",
    "error": "no gradient",
    "integer": "no gradient",
    "zero": "a gradient of exactly zero",
    "nan": "NaN",
    "inf": "infinite values",
}
