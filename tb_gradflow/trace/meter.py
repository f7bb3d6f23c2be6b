"""Measures what recording costs, while the training runs."""

from __future__ import annotations

from collections import deque
from statistics import median

from tb_gradflow.record.cost import Cost

# Of so many latest executions the median is taken: a training's pace changes.
_PLAIN, _RECORDED = 101, 11


class Meter:
    """Recording costs what a recorded execution takes longer than the median plain one. The first execution of either
    kind is left out: it is traced and compiled in that one.

    Attributes:
        elapsed: Seconds of all executions but those two.
        spent: Of these, seconds that recording took.
    """

    def __init__(self) -> None:
        self.elapsed = 0.0
        self.spent = 0.0
        self._steps = 0
        self._recorded = 0
        self._plain: deque[float] = deque(maxlen=_PLAIN)
        self._extra: deque[float] = deque(maxlen=_RECORDED)
        self._before_plain: list[float] = []
        self._compiled: dict[bool, float] = {}

    def took(self, seconds: float, *, recorded: bool) -> None:
        """One execution has taken so long, with all that the recorder did for it."""
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
        self._settle()

    @property
    def expected(self) -> float | None:
        """Seconds that recording one more will take; null while no plain execution was seen."""
        if not self._plain:
            return None
        return median(self._extra) if self._extra else 0.0

    def cost(self) -> Cost:
        """What is known now."""
        usual = (median(self._plain) if self._plain else 0.0) + (self.expected or 0.0)
        set_up = max(self._compiled.get(True, 0.0) - usual, 0.0)
        return Cost(self._steps, self._recorded, self.elapsed, self.spent, set_up)

    def _settle(self) -> None:
        """What recorded executions took longer is known as soon as there is a plain one."""
        if not self._plain:
            return
        for seconds in self._before_plain:
            extra = max(seconds - median(self._plain), 0.0)
            self._extra.append(extra)
            self.spent += extra
        self._before_plain.clear()
