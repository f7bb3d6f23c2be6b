"""Which flat ops a value influences, and which ones a loss depends on. Values, not gradients: that is `analyse`'s."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from tb_gradflow.trace.graph.differentiable import VALUE_FREE
from tb_gradflow.trace.graph.flat_ops import FlatOp


def influenced_by(
    ops: Sequence[FlatOp],
    users: Mapping[int, list[int]],
    start: Iterable[int],
    *,
    passes: Callable[[int, FlatOp], bool] = lambda producer, user: True,
) -> set[int]:
    """The ops whose value depends on one of `start`, these included; on ways alone on which every op `passes` what it
    has from another.

    Ops that see sizes and types alone end the way: their result depends on no value.
    """
    seen = set(start)
    stack = list(seen)
    while stack:
        producer = stack.pop()
        for user in users.get(producer, ()):
            if user not in seen and ops[user].type not in VALUE_FREE and passes(producer, ops[user]):
                seen.add(user)
                stack.append(user)
    return seen


def needed_for(ops: Sequence[FlatOp], end: Iterable[int]) -> set[int]:
    """The ops that the value of one of `end` depends on, these included."""
    seen = set(end)
    stack = list(seen)
    while stack:
        op = ops[stack.pop()]
        if op.type in VALUE_FREE:
            continue
        for item in op.inputs:
            if item.ref.op not in seen:
                seen.add(item.ref.op)
                stack.append(item.ref.op)
    return seen


def last_of_scopes(ops: Sequence[FlatOp], scopes: Collection[str], between: Iterable[int]) -> set[int]:
    """Of some ops, the last one in each of the name scopes."""
    last: dict[str, int] = {}
    for index in sorted(between):
        scope = ops[index].name.rpartition("/")[0]
        while scope and scope not in scopes:
            scope = scope.rpartition("/")[0]
        last[scope] = index
    return {index for scope, index in last.items() if scope}
