"""The first step at which two runs differ beyond rounding, and in it the first op and direction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tb_gradflow.analyse.divergence.compared import Comparable, Differing
from tb_gradflow.analyse.divergence.locate import Located, located
from tb_gradflow.analyse.divergence.pairing import Pairing
from tb_gradflow.analyse.divergence.recorded import RecordedStep
from tb_gradflow.analyse.divergence.rounding import UNIT_ROUNDOFF, allowed_after, tolerance
from tb_gradflow.analyse.divergence.settings import (
    Setting,
    changed_code,
    settings_of_runs,
    settings_of_updates,
)
from tb_gradflow.analyse.divergence.structure import OpDifference, op_differences

Direction = Literal["forward", "backward", "update"]

_DIRECTIONS: dict[str, Direction] = {"gradient": "backward", "rate": "update", "update": "update"}


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two runs that rounding explains.

    Attributes:
        steps: The steps that both have recorded.
        largest: The value that comes closest to what rounding allows; None if nothing can be compared.
        step: Its step; -1 if there is none.
    """

    steps: tuple[int, ...]
    largest: Differing | None
    step: int


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first difference beyond rounding.

    Attributes:
        steps: The steps that both have recorded, up to this one.
        step: The step.
        direction: Where in the step.
        differing: The first value that differs.
        count: Number of values of that kind that differ, of how many.
        located: The op at which it begins.
        settings: What differs in the settings of the runs; those of optimizers too, if the updates differ.
        ops: The ops that differ.
        code: The lines of code that differ.
        pair: The two traces.
        knows_batch: Whether all that was passed to the step was compared, and is not what differs.
        knows_weights: Whether the same goes for the variables before the step.
    """

    steps: tuple[int, ...]
    step: int
    direction: Direction
    differing: Differing
    count: tuple[int, int]
    located: Located
    settings: tuple[Setting, ...]
    ops: tuple[OpDifference, ...]
    code: tuple[str, ...]
    pair: Pairing
    knows_batch: bool
    knows_weights: bool

    @property
    def before(self) -> int | None:
        """The last step before it that both have recorded."""
        return self.steps[-2] if len(self.steps) > 1 else None


def first_divergence(pairs: Iterable[tuple[RecordedStep, RecordedStep]]) -> Divergence | Agreement:
    """Compares the steps that both runs have recorded, in their order."""
    comparable: dict[tuple[int, int], Comparable] = {}  # by the numbers of the traces in their runs
    steps: list[int] = []
    largest: tuple[Differing, int] | None = None
    before = 0.0
    for a, b in pairs:
        key = a.trace.index, b.trace.index
        if key not in comparable:
            comparable[key] = Comparable(a.trace, b.trace)
        known = comparable[key]
        first = tolerance(a.trace, b.trace)
        allowed = allowed_after(first, before, a.step - steps[-1]) if steps else first
        steps.append(a.step)
        values = list(known.differing(a, b, allowed))
        if len(steps) > 1:
            values = [each for each in values if not (each.is_beyond and known.is_of_noise(each))]
        beyond = [each for each in values if each.is_beyond]
        # A value that nothing else follows from, such as an offset in front of a softmax, makes no difference.
        if all(each.value.kind == "value" for each in beyond):
            beyond = _explained_by_optimizer(a, b, known.pair, values)
        if beyond:
            return _divergence(a, b, known.pair, steps, values, beyond)
        before = max((each.relative for each in values if each.value.kind in _GROWS), default=0.0)
        closest = max(values, key=lambda each: each.relative / each.allowed, default=None)
        if closest is not None and (largest is None or closest.relative >= largest[0].relative):
            largest = closest, a.step
    return Agreement(tuple(steps), *(largest or (None, -1)))


def _floating(pair: Pairing) -> Iterator[tuple[int, int]]:
    return ((x, y) for x, y in pair.variables.items() if pair.a.variables[x].dtype in UNIT_ROUNDOFF)


_GROWS = ("loss", "gradient")


def _explained_by_optimizer(
    a: RecordedStep, b: RecordedStep, pair: Pairing, values: Sequence[Differing]
) -> list[Differing]:
    """Updates that differ, however little, if nothing else does and the optimizers' settings do."""
    if any(each.relative > 0 for each in values if each.value.kind != "update"):
        return []
    moved = [each for each in values if each.relative > 0]
    return moved if moved and settings_of_updates(a, b, pair) else []


def _divergence(
    a: RecordedStep,
    b: RecordedStep,
    pair: Pairing,
    steps: Sequence[int],
    values: Sequence[Differing],
    beyond: Sequence[Differing],
) -> Divergence:
    kind = beyond[0].value.kind
    direction = _DIRECTIONS.get(kind, "forward")
    ops = op_differences(pair)
    place = located(pair, ops, values, beyond)
    own = settings_of_updates(a, b, pair)
    return Divergence(
        tuple(steps),
        a.step,
        direction,
        place.differing,
        (sum(each.value.kind == kind for each in beyond), sum(each.value.kind == kind for each in values)),
        place,
        (*own, *settings_of_runs(a, b, pair)) if direction == "update" else (*settings_of_runs(a, b, pair), *own),
        ops,
        changed_code(a.trace, b.trace),
        pair,
        bool(pair.inputs),
        not any(np.isnan([a.before[x, 0], b.before[y, 0]]).any() for x, y in _floating(pair)),
    )
