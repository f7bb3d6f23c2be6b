"""Decides which steps to record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from tb_gradflow.analyse.over_time.plateau import LONG
from tb_gradflow.errors import SetupError
from tb_gradflow.trace.log.meter import Meter

UpdateFreq = int | Literal["auto", "epoch"]

DENSE_STEPS = 10
"""Problems at the start (a cut, a dead layer, a wrong initial value) show within the first few steps."""

DENSE_SECONDS = 20.0
"""When recording has taken this long, the rest of the first steps waits too."""

FEWEST_DENSE_STEPS = 4
DENSE_EAGER_SECONDS = 2.0
"""The same for steps whose ops run as the program calls them, after the fewest: to record such a step takes several
times as long as to run it, with some thousand ops seconds. Some findings need four steps."""

CLOSEST = 10
"""However cheap recording is, recorded steps after the first ones are at least this far apart: more are not useful, and
a log has a size limit.
"""


class Fixed:
    """A rule that does not depend on time.

    Attributes:
        meter: Measures the cost of recording; the runner of the steps reports the duration of each.
        is_eager: See `Affordable`; does not matter here.
    """

    is_eager = False

    def __init__(self, rule: Callable[[int, bool], bool]) -> None:
        self.meter = Meter()
        self._rule = rule

    def is_due(self, steps: int, new_epoch: bool, is_last: bool = False) -> bool:
        """Whether to record, given the number of steps since recording began, whether an epoch begins, and whether a
        fit is known to end with this step."""
        return self._rule(steps, new_epoch)


class Affordable:
    """The first steps, then as often as recording takes no more than a share of the training time, including the work
    around plain steps; at least half of that share is for recording.

    The cost of the first steps must be compensated before the next step is recorded, so that recorded steps are spread
    evenly from then on. The last step of a fit does not wait for that: after a training of a minute, users want to see
    how it ended. Nor does one more step of a training in which no recorded step has changed anything: so many such
    steps are a finding.

    Attributes:
        meter: See `Fixed`.
        is_eager: Whether the ops of the steps run as the program calls them.
    """

    def __init__(self, overhead: float) -> None:
        self.meter = Meter()
        self._overhead = overhead
        self.is_eager = False
        self._last = 0
        self._elapsed_then = 0.0

    def is_due(self, steps: int, new_epoch: bool, is_last: bool = False) -> bool:
        is_brief = self.is_eager and steps >= FEWEST_DENSE_STEPS
        dense_seconds = DENSE_EAGER_SECONDS if is_brief else DENSE_SECONDS
        due = (steps < DENSE_STEPS and self.meter.spent_so_far < dense_seconds) or (
            steps - self._last >= CLOSEST and (self._affords_one() or (is_last and self._affords_an_end()))
        )
        due = due or (self.meter.has_moved is False and steps >= LONG > self._last)
        if due:
            self._last, self._elapsed_then = steps, self.meter.elapsed
        return due

    def _affords_an_end(self) -> bool:
        """Whether one more recorded step is a small enough part of the time since the last one, whatever was spent
        before.
        """
        expected = self.meter.expected
        return expected is not None and expected <= self._overhead * (self.meter.elapsed - self._elapsed_then)

    def _affords_one(self) -> bool:
        expected = self.meter.expected
        if expected is None:
            return False
        all_of_it = self._overhead * self.meter.elapsed
        # Steps of a millisecond are recorded too, although the work around the other steps already uses the whole share
        # there.
        share = max(all_of_it - self.meter.around, all_of_it / 2)
        return self.meter.spent + expected <= share


Cadence = Affordable | Fixed
"""A rule for which steps to record: see `Fixed`."""


def cadence(update_freq: UpdateFreq, overhead: float) -> Cadence:
    """The rule for the arguments of these names."""
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
