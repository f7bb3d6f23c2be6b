"""Which of the requested gradients a `run` of a session trains with: those from which it computes a new value of a
variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tb_gradflow.trace.sessions.executions import Execution, variables_written_by
from tb_gradflow.trace.sessions.requests import Request


@dataclass(frozen=True, slots=True)
class Step:
    """The step of one training in a `run`.

    Attributes:
        requests: The requests that belong to the training, by number, in order.
        inner: Those of them whose gradient is a part of another one's loss.
        updates: The ops that change variables with these gradients; none if the program only evaluates them.
    """

    requests: tuple[int, ...]
    inner: frozenset[int]
    updates: tuple[Any, ...]


def steps_in(execution: Execution, requests: Sequence[Request]) -> list[Step]:
    """The steps in one kind of `run`. Gradients that meet in an update belong to one training: those of several towers,
    or of a loss that contains a gradient.
    """
    reached: dict[int, set[str]] = {}
    for number, request in enumerate(requests):
        results = [each for each in request.results() if each in execution or each.name in execution.fetched]
        if results:
            reached[number] = execution.influenced_by(results) | {each.op.name for each in results}
    writes = {name for name, op in execution.ops.items() if any(True for _ in variables_written_by(op))}
    groups = _groups({number: names & writes for number, names in reached.items()})
    found = []
    for numbers, updates in groups:
        # A gradient that is only evaluated may be a part of another one's loss too.
        others = numbers if updates else tuple(reached)
        inner = frozenset(number for number in numbers if _leads_to_another(number, others, reached, requests))
        if not updates and inner:
            continue
        found.append(Step(numbers, inner, tuple(execution.ops[name] for name in sorted(updates))))
    return found


def _groups(meeting: dict[int, set[str]]) -> list[tuple[tuple[int, ...], set[str]]]:
    """The numbers that have a common name, with their names."""
    groups: list[tuple[list[int], set[str]]] = []
    for number, names in meeting.items():
        mine = [group for group in groups if group[1] & names]
        groups = [group for group in groups if group not in mine]
        groups.append(
            ([*(each for group in mine for each in group[0]), number], names.union(*(group[1] for group in mine)))
        )
    return [(tuple(sorted(numbers)), names) for numbers, names in groups]


def _leads_to_another(
    number: int, numbers: Iterable[int], reached: dict[int, set[str]], requests: Sequence[Request]
) -> bool:
    """Whether the loss of another request, or the gradient that it starts with, is computed from a gradient."""
    return any(
        start is not None and start.op.name in reached[number]
        for other in numbers
        if other != number
        for start in (*requests[other].targets, *requests[other].weights)
    )
