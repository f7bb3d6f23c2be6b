"""Where the values of ops finally flow, for all ops in one sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outlet:
    """Where the value of an op flows.

    Attributes:
        end: The last op that it flows into and that nothing uses; -1 if there is none.
        furthest: The last op that it flows into at all.
        computes: Whether any of these is more than a copy.
    """

    end: int
    furthest: int
    computes: bool


def outlets(takers: Sequence[Sequence[int]], copies: Sequence[bool], *, again: bool) -> list[Outlet]:
    """The sink of each op, from the ops that use its value and whether it is a copy. `again` means that loops carry
    values back, so one sweep may not be enough."""
    found = [Outlet(-1, -1, False)] * len(takers)
    changed = True
    while changed:
        changed = False
        for op in range(len(found) - 1, -1, -1):
            onward = [found[taker] for taker in takers[op] if taker != op]
            outlet = Outlet(
                end=max(each.end for each in onward) if onward else op,
                furthest=max(op, *(each.furthest for each in onward)) if onward else op,
                computes=not copies[op] or any(each.computes for each in onward),
            )
            if outlet != found[op]:
                found[op] = outlet
                changed = again
    return found
