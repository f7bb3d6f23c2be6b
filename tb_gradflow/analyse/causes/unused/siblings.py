"""The other variables of a variable's layer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.graph.same_named import numbered

_PARTS = re.compile(r"_?(kernel|bias|weights?|w|b|scale|offset|gamma|beta)$")


def siblings_of(suspect: Suspect) -> Sequence[int]:
    """The variables of the suspect's layer, its own included."""
    variables = suspect.topology.trace.variables

    def by_layer() -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for place, each in enumerate(variables):
            found.setdefault(_layer_of(each.name), []).append(place)
        return found

    return suspect.measured.once("layers", by_layer)[_layer_of(variables[suspect.state.variable].name)]


def _layer_of(name: str) -> str:
    """The layer that a variable belongs to; for a name without a layer, the name without its role (kernel, bias).
    Variables of a clone with the same names are numbered, and do not belong to that layer."""
    name, number = numbered(name)
    layer, _, own = name.rpartition("/")
    return (layer or _PARTS.sub("", own)) + number
