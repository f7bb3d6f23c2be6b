"""Measures what recording costs, while the training runs."""

from __future__ import annotations

from collections import deque
from statistics import median

from tb_gradflow.record.cost import Cost

# Of so many latest executions the median is taken: a training's pace changes.
_PLAIN, _RECORDED = 101, 11


class Meter:
    """Recording costs what a recorded execution takes longer than the median plain one, and what is done around the
    plain ones. The first execution of either kind is left out: it is traced and compiled in that one.

    Attributes:
        elapsed: Seconds of all executions but those two.
        spent: Of these, seconds that recorded executions took longer.
        around: Of these, seconds before and after plain ones.
        expected: Seconds that recording one more will take; null while no plain execution was seen.
    """

    def __init__(self) -> None:
        self.elapsed = 0.0
        self.spent = self.around = 0.0
        self.expected: float | None = None
        self._steps = 0
        self._recorded = 0
        self._plain: deque[float] = deque(maxlen=_PLAIN)
        self._extra: deque[float] = deque(maxlen=_RECORDED)
        self._before_plain: list[float] = []
        self._compiled: dict[bool, float] = {}

    def took(self, seconds: float, *, recorded: bool, own: float = 0.0) -> None:
        """One execution has taken so long, with all that the recorder did for it.

        `own` are the seconds of these that the recorder took before and after what ran: of a plain one, its cost.
        """
        self._steps += 1
        self._recorded += recorded
        if recorded not in self._compiled:
            self._compiled[recorded] = seconds
            return
        self.elapsed += seconds
        if recorded:
            self._before_plain.append(seconds)
        else:
            self._plain.append(seconds)
            self.around += own
        if self._plain and (self._before_plain or self.expected is None):
            self._settle()

    def cost(self) -> Cost:
        """What is known now."""
        usual = (median(self._plain) if self._plain else 0.0) + (self.expected or 0.0)
        set_up = max(self._compiled.get(True, 0.0) - usual, 0.0)
        return Cost(self._steps, self._recorded, self.elapsed, self.spent + self.around, set_up)

    def _settle(self) -> None:
        """What recorded executions took longer is known as soon as there is a plain one."""
        for seconds in self._before_plain:
            extra = max(seconds - median(self._plain), 0.0)
            self._extra.append(extra)
            self.spent += extra
        self._before_plain.clear()
        self.expected = median(self._extra) if self._extra else 0.0
