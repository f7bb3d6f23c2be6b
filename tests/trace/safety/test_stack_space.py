"""Calls under a trace do not map a chunk of Python's stack each."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable

from tb_gradflow.trace.engine.stack_space import with_stack_space

CALLS, DEPTHS = 2000, 400


def leaf() -> None:
    """Only its call matters."""


# Its frame is larger than that of a caller: wherever a chunk ends, one of the callers is the last that fits into it.
leaf.__code__ = leaf.__code__.replace(co_stacksize=100)


def faults_at(depth: int) -> int:
    """The page faults of a loop of calls this many frames deeper."""
    if depth:
        return faults_at(depth - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(CALLS):
        leaf()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def slow_depths(call: Callable[[int], int]) -> list[int]:
    return [depth for depth in range(DEPTHS) if call(depth) > CALLS / 2]


def test_no_depth_is_slow() -> None:
    @with_stack_space
    def faults_with_space(depth: int) -> int:
        return faults_at(depth)

    assert slow_depths(faults_with_space) == []
    # Python 3.14 keeps the last chunk that was left.
    assert bool(slow_depths(faults_at)) == ((3, 11) <= sys.version_info < (3, 14))


def test_arguments_results_and_variables_around_it_are_kept() -> None:
    around = [1]

    @with_stack_space
    def function(one: int, *, other: int = 2) -> list[int]:
        around.append(one)
        return [*around, other]

    assert function(5) == [1, 5, 2]
    assert function.__name__ == "function"
