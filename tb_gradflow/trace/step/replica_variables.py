"""The variables that a compiled step reads, for each replica that it runs in this process."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tb_gradflow.trace.graph.variables import Owned, Variables

# TensorFlow's names for the copies of a mirrored variable on the second and later replicas.
_OF_REPLICA = re.compile(r"(?P<name>.*)/replica_(?P<number>\d+)$")


def variables_of(function: Any) -> Sequence[Variables]:
    """The variables of each replica, in the order of their creation; one list for a step without replicas. Variables of
    other replicas are left out.
    """
    # A graph does not keep its variables in order.
    captured = sorted(function.variables, key=lambda variable: variable.handle._id)
    names = {_name(variable) for variable in captured}
    numbered = [(variable, *_replica(_name(variable), names)) for variable in captured]
    count = 1 + max((number for _, _, number in numbered), default=0)
    return [_of_replica(number, numbered) for number in range(count)]


def _of_replica(number: int, numbered: Sequence[tuple[Any, str, int]]) -> Variables:
    mirrored = {name for _, name, each in numbered if each}
    own = [(variable, name) for variable, name, each in numbered if each == number or name not in mirrored]
    owned = [Owned(variable, name, True, tracked=False) for variable, name in own if variable.trainable]
    ids = {id(variable) for variable, _ in own if variable.trainable}
    others = [variable for variable, _, _ in numbered if id(variable) not in ids]
    return Variables(lambda: owned, lambda: others)


def _name(variable: Any) -> str:
    return str(variable.name).removesuffix(":0")


def _replica(name: str, names: set[str]) -> tuple[str, int]:
    """The name without its replica, and the replica."""
    found = _OF_REPLICA.match(name)
    if found is None or found["name"] not in names:
        return name, 0
    return found["name"], int(found["number"])
