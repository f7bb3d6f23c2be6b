"""Variables that have the same name: those of a network and of its clone."""

from __future__ import annotations

import re

from tb_gradflow.analyse.graph.topology import Topology

_NUMBER = re.compile(r" \([0-9]+\)$")


def numbered(name: str) -> tuple[str, str]:
    """A variable's name, and the suffix that distinguishes it from others of the same name; empty for the first of
    them."""
    found = _NUMBER.search(name)
    return (name[: found.start()], found.group()) if found is not None else (name, "")


def twin_in_use(topology: Topology, variable: int, target: int) -> str:
    """The name of another variable with the same name, on which the target does depend; empty if there is none."""
    own, _ = numbered(topology.trace.variables[variable].name)
    return next(
        (
            each.name
            for place, each in enumerate(topology.trace.variables)
            if place != variable and numbered(each.name)[0] == own and topology.influences(place, target)
        ),
        "",
    )
