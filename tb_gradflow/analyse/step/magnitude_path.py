"""How a gradient's size changes on its path from the loss, for all paths in one sweep. The shortest paths from all ops
to a target share their ends, so a sum at one op is reused for all ops before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log10

from tb_gradflow.analyse.graph.op_sets import SATURABLE
from tb_gradflow.analyse.graph.paths import Ways


@dataclass(frozen=True, slots=True)
class Share:
    """How the ops of one type change the gradient along one path, in decades: orders of magnitude lost.

    Attributes:
        total: The sum; negative if the gradient grows.
        most: The largest loss at one op, and that op.
        least: The least; where the gradient grows, the most that is added.
    """

    total: float
    most: tuple[float, int]
    least: tuple[float, int]


Course = Mapping[str, Share]
"""One path, by the type of the op that propagates the gradient."""


@dataclass(frozen=True, slots=True)
class Courses:
    """The paths from a target to every op.

    Attributes:
        courses: For each op, the path from the target to it; empty if there is none.
        measured: For each op, the nearest op toward the target whose gradient is known, itself counted.
        blamed: For each op, the op that has shrunk what arrives from that one: itself, or an op in between that can be
            flat.
        levels: For each op, the largest element of its gradient; 0 if not known.
        types: The type of each op.
    """

    courses: Sequence[Course]
    measured: Sequence[int]
    blamed: Sequence[int]
    levels: Sequence[float]
    types: Sequence[str]

    def to_variable(self, consumers: Sequence[int], level: float) -> Course:
        """The path to a variable with a gradient of size `level`, whose value goes to `consumers`, nearest first."""
        onward = self.nearest(consumers, level)
        blamed, arrived = self.blamed[onward], self.levels[self.measured[onward]]
        return _with(self.courses[onward], self.types[blamed], log10(arrived / level), blamed)

    def nearest(self, consumers: Sequence[int], level: float) -> int:
        """The first of those whose gradient is nearest to `level` in size."""
        return min(consumers, key=lambda each: abs(log10(self.levels[self.measured[each]] / level)))


def courses_to(
    ways: Ways, consumers: Callable[[int], Sequence[int]], levels: Sequence[float], types: Sequence[str]
) -> Courses:
    """Sweeps once over all paths. The target's gradient with respect to itself is one if it was not measured. A tensor
    that several ops use gets the sum of their gradients, and only that sum is known. It is attributed to the op whose
    incoming gradient is closest to it in size, because that op changes it least.

    Args:
        ways: The shortest paths, which are used where a gradient is not known and in graphs with loops.
        consumers: For each op, the ops that propagate a gradient to it.
        levels: For each op, the largest element of its gradient; 0 if not known.
        types: The type of each op.
    """
    known = list(levels)
    courses: list[Course] = [{}] * len(types)
    measured, blamed = list(range(len(types))), list(range(len(types)))
    found = Courses(courses, measured, blamed, known, types)
    reached = [op for op, hops in enumerate(ways.hops) if hops >= 0]
    is_sorted = all(ways.onward[op] < 0 or ways.onward[op] > op for op in reached)
    for op in reversed(reached) if is_sorted else sorted(reached, key=lambda op: ways.hops[op]):
        onward = ways.onward[op]
        if onward < 0:
            known[op] = known[op] or 1.0
            continue
        if is_sorted and known[op]:
            onward = found.nearest([each for each in consumers(op) if each > op and ways.hops[each] >= 0], known[op])
        courses[op] = courses[onward]
        if known[op]:
            decades = log10(known[measured[onward]] / known[op])
            courses[op] = _with(courses[onward], types[blamed[onward]], decades, blamed[onward])
        else:
            measured[op] = measured[onward]
            blamed[op] = op if is_sorted and types[op] in SATURABLE else blamed[onward]
    return found


def _with(course: Course, kind: str, decades: float, op: int) -> Course:
    share = course.get(kind, Share(0.0, (-1e9, -1), (1e9, -1)))
    step = (decades, op)
    grown = replace(share, total=share.total + decades, most=max(share.most, step), least=min(share.least, step))
    return {**course, kind: grown}
