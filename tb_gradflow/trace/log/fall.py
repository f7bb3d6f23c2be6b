"""Whether the loss of a training has fallen, by its recorded steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

_FIRST = 10
"""How many steps the loss is compared with: those that are recorded in any case."""

_LEAST = 0.1
"""A loss that has fallen by a smaller part has not fallen: to learn how often each class occurs is about as much."""

_LATER = 0.125
"""By which part the number of recorded steps grows until another one is looked at."""


class Fall:
    """The course of a loss.

    Attributes:
        began: The mean of the first losses.
        ended: That of the last ones, at most as many.
    """

    def __init__(self) -> None:
        self._first: list[float] = []
        self._last: deque[float] = deque(maxlen=_FIRST)
        self._count = self._looked_at = 0
        self.began = self.ended = np.nan

    def is_missing(self, losses: Sequence[float]) -> bool | None:
        """Whether the loss had not fallen until a recorded step with these losses; `None` if that is not asked again so
        soon, or if there are several: what one loses, another one gains."""
        if len(losses) != 1:
            return None
        self._count += 1
        (self._first if len(self._first) < _FIRST else self._last).append(losses[0])
        if not self._last or self._count < (1 + _LATER) * self._looked_at:
            return None
        self._looked_at = self._count
        self.began, self.ended = float(np.mean(self._first)), float(np.mean(self._last))
        return bool(np.isfinite(self.ended) and self.began - self.ended < _LEAST * abs(self.began))
