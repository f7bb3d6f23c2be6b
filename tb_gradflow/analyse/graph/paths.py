"""Shortest paths through a graph of ops, and sets of ops as bits."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ways:
    """The shortest path from every op to one target.

    Attributes:
        hops: Edges between the op and the target; -1 if there is no path.
        onward: The next op on that path; -1 at the target and if there is no path.
    """

    hops: tuple[int, ...]
    onward: tuple[int, ...]

    def from_op(self, op: int) -> tuple[int, ...]:
        """The ops from `op` to the target, both included; empty if there is no path."""
        if op < 0 or self.hops[op] < 0:
            return ()
        way = [op]
        while self.onward[way[-1]] >= 0:
            way.append(self.onward[way[-1]])
        return tuple(way)


def members(bits: int) -> Iterator[int]:
    """The numbers of the bits that are set, increasing."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def ways_to(goal: int, sources: Sequence[Sequence[int]]) -> Ways:
    hops, onward = [-1] * len(sources), [-1] * len(sources)
    queue: deque[int] = deque()
    if goal >= 0:
        hops[goal] = 0
        queue.append(goal)
    while queue:
        op = queue.popleft()
        for source in sources[op]:
            if hops[source] < 0:
                hops[source] = hops[op] + 1
                onward[source] = op
                queue.append(source)
    return Ways(tuple(hops), tuple(onward))


def walked(start: Iterable[int], further: Callable[[int], Iterable[int]]) -> Iterator[int]:
    """The ops that can be reached from some, these included: each once, the nearest first. Numbers below zero are no
    ops. The neighbours of an op are requested after the op has been yielded.
    """
    queue = [op for op in dict.fromkeys(start) if op >= 0]
    seen = set(queue)
    for op in queue:  # grows while it is walked
        yield op
        for each in further(op):
            if each >= 0 and each not in seen:
                seen.add(each)
                queue.append(each)


def unwound(came_from: Mapping[int, int], goal: int) -> tuple[int, ...]:
    way = [goal]
    while came_from[way[-1]] >= 0:
        way.append(came_from[way[-1]])
    return tuple(reversed(way))
