"""How a value reached the point where it breaks: from the ranges that the recorded steps of a run have measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tb_gradflow.analyse.graph.op_sets import DIVISIONS, OVERFLOWING, SINGULAR_INPUT
from tb_gradflow.analyse.over_time.value_courses import Ranged
from tb_gradflow.analyse.words.forward_pass import is_broken, name_of_argument
from tb_gradflow.analyse.words.names import Group

# Exponentials overflow if their input is too large; the other functions break near zero or below it.
_FALLING = frozenset({"Log", "Sqrt", "Rsqrt", "Xlogy", "Pow", *DIVISIONS})

# A value must change by this factor: otherwise it was that size from the start, and did not get there over the steps.
_CHANGED = 4.0


def grown(group: Group) -> str:
    """A sentence after a message; empty if other steps are not known, or show no change."""
    kind = group.op.type if group.op is not None else ""
    if kind not in (*OVERFLOWING, *_FALLING) or not is_broken(group):
        return ""
    course = group.suspect.measured.value_courses.get((group.culprit, SINGULAR_INPUT[kind]), ())
    step = group.suspect.measured.step
    if len(course) < 2 or course[-1].step != step:
        return ""
    name = name_of_argument(group) or "the input"
    subject = f"{name[0].upper()}{name[1:]}"
    if kind in OVERFLOWING:
        size: Callable[[Ranged], float] = (
            (lambda each: each.largest)
            if kind in ("Exp", "Expm1")
            else lambda each: max(abs(each.smallest), abs(each.largest))
        )
        if size(course[-1]) <= _CHANGED * max(size(course[0]), 1.0):
            return ""
        return f" {subject} has grown from {_course(course, size)}."
    size = _smallest
    # Negative or zero from the start: that is how it is computed, and no development over the steps.
    if course[0].smallest <= 0 or size(course[-1]) * _CHANGED >= size(course[0]):
        return ""
    whose = f"The magnitude of {name}" if kind in DIVISIONS else f"The smallest value of {name}"
    return f" {whose} has fallen from {_course(course, size)}."


def _smallest(each: Ranged) -> float:
    return each.smallest


def _course(course: Sequence[Ranged], size: Callable[[Ranged], float]) -> str:
    """The value in the first step, in the step before the last if it lies between, and in the last."""
    first, before, last = course[0], course[-2], course[-1]
    is_between = before is not first and sorted(map(size, (first, before, last)))[1] == size(before)
    near = f"{_number(size(before))} in step {before.step} and " if is_between else ""
    return f"{_number(size(first))} in step {first.step} to {near}{_number(size(last))} in step {last.step}"


def _number(value: float) -> str:
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.3g}"
