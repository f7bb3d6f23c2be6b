"""The steps of a run whose loss or gradient was far above what was usual, and what the experiments with each say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from tb_gradflow.record.schema import DataRow, MovedWeights, Spike, SpikeTrial, StepValues, Trace

Kind = Literal["not_reproducible", "rows", "batch", "element", "variable", "rate", "update", "unknown"]
"""What made a step unusual. rows: some rows of its batch. batch: its batch as a whole. element: one element of a weight
has jumped. variable: one variable has moved far more than all others. rate: the weights have moved too far, and the
learning rate has grown. update: they have moved too far."""

_LATER = 8
"""How many later steps are looked at."""

_FEWEST_LATER = 3

_LASTS_ABOVE = 3.0
"""A loss that stays above so many times the usual one has suffered."""

_ALONE = 0.99
"""One element has jumped if it has this part of the square of its variable's change."""

_JUMP = 100.0
"""Times as far as any element of another variable has moved."""

_FEWEST_ELEMENTS = 8

_FAR = 10.0
"""One variable has moved far if it has done so by so many times the part of its norm that any other has."""

_RATE = 1.9
"""A learning rate has grown by this factor at least, if it is named."""


@dataclass(frozen=True, slots=True)
class SpikeSeen:
    """A step of the run.

    Attributes:
        step: Its number.
        trace: Its structure.
        spike: What was measured.
        later: The losses of the next recorded steps; none if there are none yet.
        data_rows: Where rows of its batch are in the data set.
    """

    step: int
    trace: Trace
    spike: Spike
    later: tuple[float, ...] = ()
    data_rows: tuple[DataRow, ...] = ()

    @property
    def value(self) -> float:
        """What is too large, in the step."""
        return self.spike.loss if self.spike.of == "loss" else self.spike.norm

    @property
    def usual(self) -> float:
        """What it is otherwise."""
        return self.spike.usual_loss if self.spike.of == "loss" else self.spike.usual_norm

    @property
    def lasts(self) -> bool | None:
        """Whether the loss has stayed high; `None` if that is not known yet."""
        if len(self.later) < _FEWEST_LATER or not all(map(math.isfinite, self.later)):
            return None
        return median(self.later) > _LASTS_ABOVE * self.spike.usual_loss

    def measured(self, trial: SpikeTrial) -> float | None:
        """What a trial says of what is too large."""
        return trial.loss if self.spike.of == "loss" else trial.norm

    def trial(self, changed: str) -> SpikeTrial | None:
        return next((each for each in self.spike.trials if each.changed == changed), None)

    def is_usual(self, changed: str) -> bool | None:
        """Whether it would have been a usual step; `None` if that was not tried."""
        trial = self.trial(changed)
        if trial is None:
            return None
        found = self.measured(trial)
        return found is not None and found < self.spike.limit

    @property
    def kind(self) -> Kind:
        """What made it unusual, as far as the experiments agree."""
        if not self.spike.trials or (self.is_usual("nothing") and self.spike.draws):
            return "unknown"
        if self.is_usual("nothing"):
            return "not_reproducible"
        if self.is_usual("weights") and self.is_usual("batch") is False:
            return self._of_weights()
        if self.is_usual("rows"):
            return "rows"
        return "batch" if self.is_usual("weights") is False and self.is_usual("batch") else "unknown"

    def _of_weights(self) -> Kind:
        first = self.furthest
        if first is not None:
            largest = [each.largest for each in self.spike.moved if each is not first]
            is_alone = first.largest**2 > _ALONE * first.change**2 and first.count >= _FEWEST_ELEMENTS
            if is_alone and first.largest > _JUMP * max(largest, default=0.0) and largest:
                return "element"
            parts = [_part(each) for each in self.spike.moved if each is not first]
            if parts and _part(first) > _FAR * max(parts):
                return "variable"
        rates = self.spike.rates
        return "rate" if rates and rates[1] > _RATE * rates[0] else "update"

    @property
    def furthest(self) -> MovedWeights | None:
        """The variable that has moved by the largest part of its norm; of those that began at about zero, none if there
        is another one."""
        return max(self.spike.moved, key=_part, default=None)


def _part(moved: MovedWeights) -> float:
    # A bias that began as zeros has moved by all of its norm.
    return moved.change / max(moved.size, 0.1 * math.sqrt(moved.count))


def spikes_of(
    tried: Iterable[tuple[Trace, StepValues]], losses: Sequence[tuple[int, Trace, Sequence[float]]]
) -> Iterator[SpikeSeen]:
    """Those of a run. `tried` are the steps of which more was measured than gradients, `losses` those of all recorded
    steps."""
    for trace, values in tried:
        if values.spike is not None:
            name = trace.targets[values.spike.target].name
            later = [
                known[target]
                for step, of, known in losses
                if step > values.step
                for target, each in enumerate(of.targets)
                if each.name == name and each.measured and target < len(known)
            ]
            yield SpikeSeen(values.step, trace, values.spike, tuple(later[:_LATER]), values.data_rows)
