"""The loss along the line from the weights before a step to those after it: is a longer or a shorter step better?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_gradflow.record.experiments import LineSearch
from tb_gradflow.record.schema import MOVEMENT_STATISTICS, Trace
from tb_gradflow.trace.experiments.loss_alone import MOST_OF_LOSS, LastStep, LossAlone

_FACTORS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1e4, 1e6)
"""By which the update is multiplied."""

_FEWEST = 12
"""In how many recorded steps a loss must not have fallen before that is a question: in more than the first ten, which
are recorded before there has been time to pay for it."""

_LEAST_FALL = 0.05
"""A loss that has fallen by a larger part, beyond noise, is learning: the second half of its values below the first."""

_RISE = 10.0
"""A loss that is so many times the first one has risen."""

_MOST_TIMES = 3

_RATE = MOVEMENT_STATISTICS.index("rate")


class Progress:
    """Whether the loss of a training does not fall, so that its steps are in question."""

    def __init__(self) -> None:
        self._losses: list[float] = []
        self._times = 0
        self._has_risen = False

    @property
    def is_over(self) -> bool:
        """Whether no more steps are looked at."""
        return self._times == _MOST_TIMES

    def is_bad(self, losses: Sequence[float]) -> bool:
        """Whether a recorded step with these losses is one to look at: the first one with a far higher loss than in the
        beginning, and after 12, 24 and 48 of them."""
        if len(losses) != 1 or self.is_over:
            return False  # each has an optimizer of its own, and their steps follow each other
        self._losses.append(losses[0])
        if not self._has_risen and _RISE * abs(self._losses[0]) < losses[0] < np.inf:
            self._has_risen = True
            return True
        if len(self._losses) != _FEWEST << self._times:
            return False
        self._times += 1
        half = len(self._losses) // 2
        first, last = self._losses[:half], self._losses[half:]
        # Batches differ: the mean of a half is known up to its standard error.
        error = np.sqrt((np.var(first) + np.var(last)) / half)
        fall = np.mean(first) - np.mean(last)
        return bool(np.isfinite(fall) and fall < _LEAST_FALL * abs(np.mean(first)) + error)


def rate_in(trace: Trace, gradients: npt.NDArray[np.float32]) -> float | None:
    """The learning rate of a step; `None` if it is not known, or not the same for all variables."""
    rates = {float(gradients[each.row][_RATE]) for each in trace.movements}
    return rates.pop() if len(rates) == 1 and np.isfinite(list(rates)).all() else None


def line_searches(
    loss: LossAlone,
    step: LastStep,
    numbers: Mapping[int, int],
    first: tuple[Mapping[int, float], Mapping[int, float]],
    rate: float | None,
) -> Iterator[LineSearch]:
    """That of a step's only loss, if it has one; `first` are the losses before the step, twice."""
    known, again = first
    moved = {
        number: (step.values[number], later)
        for number in numbers.values()
        if (later := step.after.get(number)) is not None
        and step.values.get(number) is not None
        and later.dtype.is_floating
        and not bool(tf.reduce_all(later == step.values[number]))
    }
    if len(known) != 1 or not moved:
        return
    [(target, before)] = known.items()
    if not np.isfinite([before, again[target]]).all():
        return

    def after(factor: float) -> float | None:
        values = {number: one + tf.cast(factor, one.dtype) * (other - one) for number, (one, other) in moved.items()}
        try:
            found = loss(MOST_OF_LOSS, values).get(target, np.nan)
        except tf.errors.OpError:  # an index is out of range, or a loop does not end
            return None
        return found if np.isfinite(found) else None

    yield LineSearch(target, before, again[target], _FACTORS, tuple(map(after, _FACTORS)), rate)
