"""Which steps to record."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Literal, Protocol

from tb_gradflow.errors import SetupError

UpdateFreq = int | Literal["auto", "epoch"]

DENSE_STEPS = 10
"""Trouble at the start (a cut, a dead layer, a wrong initial value) shows within the first few steps."""

CLOSEST = 10
"""However cheap, no two recorded steps after the first ones are closer: nobody looks at more, and a log holds them."""


class Cadence(Protocol):
    def is_due(self, steps: int, new_epoch: bool) -> bool:
        """Whether to record, given the number of steps since recording began and whether an epoch begins."""

    def took(self, seconds: float, *, recorded: bool) -> None:
        """How long an execution of the training function was, with all that the recorder did for it."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """A rule that does not depend on the time."""

    rule: Callable[[int, bool], bool]

    def is_due(self, steps: int, new_epoch: bool) -> bool:
        return self.rule(steps, new_epoch)

    def took(self, seconds: float, *, recorded: bool) -> None:
        """Of no concern."""


class Affordable:
    """The first steps, then as often as recording takes no more than a share of the training time.

    What recording costs is what a recorded execution takes longer than the median plain one. The first execution of
    either kind is left out: it is traced and compiled in that one. The debt of the first steps is paid off before
    the next is recorded, so that the recorded ones are spread evenly after that.
    """

    def __init__(self, overhead: float) -> None:
        self._overhead = overhead
        self._plain: deque[float] = deque(maxlen=101)
        self._extra: deque[float] = deque(maxlen=11)
        self._compiled = {True: False, False: False}
        self._dense: list[float] = []
        self._elapsed = 0.0
        self._spent = 0.0
        self._last = 0

    def is_due(self, steps: int, new_epoch: bool) -> bool:
        due = steps < DENSE_STEPS or (steps - self._last >= CLOSEST and self._affords_one())
        if due:
            self._last = steps
        return due

    def took(self, seconds: float, *, recorded: bool) -> None:
        if not self._compiled[recorded]:
            self._compiled[recorded] = True
            return
        self._elapsed += seconds
        if not recorded:
            self._plain.append(seconds)
        elif self._plain:
            self._spend(seconds)
        else:
            self._dense.append(seconds)

    def _affords_one(self) -> bool:
        if not self._plain:
            return False
        while self._dense:
            self._spend(self._dense.pop())
        expected = median(self._extra) if self._extra else 0.0
        return self._spent + expected <= self._overhead * self._elapsed

    def _spend(self, seconds: float) -> None:
        extra = max(seconds - median(self._plain), 0.0)
        self._extra.append(extra)
        self._spent += extra


def cadence(update_freq: UpdateFreq, overhead: float) -> Cadence:
    """The rule that the arguments of those names stand for."""
    if isinstance(overhead, bool) or not isinstance(overhead, (int, float)) or not 0 < overhead <= 1:
        raise SetupError(f"overhead must be a share of the training time, above 0 and at most 1, got {overhead!r}")
    if update_freq == "auto":
        return Affordable(overhead)
    if update_freq == "epoch":
        return Fixed(lambda steps, new_epoch: new_epoch)
    if isinstance(update_freq, bool) or not isinstance(update_freq, int):
        raise SetupError(f"update_freq must be 'auto', 'epoch' or a number of steps, got {update_freq!r}")
    if update_freq < 1:
        raise SetupError(f"update_freq must be at least 1 step, got {update_freq}")
    every = update_freq
    return Fixed(lambda steps, new_epoch: steps % every == 0)
