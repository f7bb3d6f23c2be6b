"""Variables that correspond to each other: those of a network and of its clone."""

from __future__ import annotations

import re

from tb_gradflow.analyse.graph.topology import Topology

_NUMBER = re.compile(r" \([0-9]+\)$")

_UNNAMED = "Variable"
"""How TensorFlow names what the program gives no name."""


def numbered(name: str) -> tuple[str, str]:
    """A variable's name, and the suffix that distinguishes it from others of the same name; empty for the first of
    them."""
    found = _NUMBER.search(name)
    return (name[: found.start()], found.group()) if found is not None else (name, "")


def twin_in_use(topology: Topology, variable: int, target: int) -> str:
    """The name of another variable with the same name, on which the target does depend; empty if there is none."""
    own, _ = numbered(topology.trace.variables[variable].name)
    if own == _UNNAMED:
        return ""
    return next(
        (
            each.name
            for place, each in enumerate(topology.trace.variables)
            if place != variable and numbered(each.name)[0] == own and topology.influences(place, target)
        ),
        "",
    )


def copy_in_use(topology: Topology, target: int) -> str:
    """The name of the first variable of a network that the target depends on and for which no gradient was requested,
    if it has the shapes of a network that is the other way round: nothing uses it, though its gradient was requested.
    Empty if there is none.
    """
    variables = topology.trace.variables
    outcomes = {each.variable: each.outcome for each in topology.trace.variable_gradients if each.target == target}
    used = {place for place in range(len(variables)) if topology.influences(place, target)}
    asked = [place for place in sorted(outcomes) if outcomes[place] != "not_asked"]
    spare = [place for place in sorted(used.difference(asked)) if not variables[place].computed]
    # A single bias has the shape of many others.
    alike = [variables[place].shape for place in asked] == [variables[place].shape for place in spare]
    return variables[spare[0]].name if len(asked) > 1 and used.isdisjoint(asked) and alike else ""
