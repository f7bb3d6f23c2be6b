"""Which flat ops a value influences, and on which ones a loss depends. This is about values; gradients are the business
of `analyse`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from tb_gradflow.analyse.graph.op_sets import SHAPE_ONLY
from tb_gradflow.trace.engine.reached import reached
from tb_gradflow.trace.graph.flat_ops import FlatOp


def influenced_by(
    ops: Sequence[FlatOp],
    users: Mapping[int, list[int]],
    start: Iterable[int],
    *,
    passes: Callable[[int, FlatOp], bool] = lambda producer, user: True,
) -> set[int]:
    """The ops whose value depends on one of `start`, these included; only along paths on which every op `passes` its
    input on.

    Ops that use only sizes and types end a path: their result does not depend on the value.
    """

    def onward(producer: int) -> Iterable[int]:
        takers = users.get(producer, ())
        return (user for user in takers if ops[user].type not in SHAPE_ONLY and passes(producer, ops[user]))

    return set(reached(start, onward))


def needed_for(ops: Sequence[FlatOp], end: Iterable[int]) -> set[int]:
    """The ops on which the value of one of `end` depends, these included."""

    def inputs(index: int) -> Iterable[int]:
        return () if ops[index].type in SHAPE_ONLY else (item.ref.op for item in ops[index].inputs)

    return set(reached(end, inputs))


def last_of_scopes(ops: Sequence[FlatOp], scopes: Collection[str], between: Iterable[int]) -> set[int]:
    """The last op in each name scope, of the given ops."""
    last: dict[str, int] = {}
    for index in sorted(between):
        scope = ops[index].name.rpartition("/")[0]
        while scope and scope not in scopes:
            scope = scope.rpartition("/")[0]
        last[scope] = index
    return {index for scope, index in last.items() if scope}
