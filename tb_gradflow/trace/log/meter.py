"""Measures the cost of recording during the training."""

from __future__ import annotations

from collections import deque
from statistics import median

from tb_gradflow.record.cost import Cost

# The median is taken over this many latest executions, because the speed of a training changes.
_PLAIN, _RECORDED = 101, 11


class Meter:
    """The cost of recording is the time by which recorded executions exceed the median plain one, plus the work around
    plain ones. The first execution of each kind is left out, because it includes tracing and compilation.

    Attributes:
        elapsed: Seconds of all executions but those two.
        spent: Of these, the seconds by which recorded executions were longer.
        around: Of these, seconds before and after plain ones.
        expected: Seconds that one more recorded execution will cost; None before the first plain execution.
        has_moved: Whether a recorded step has changed a variable; None before the first.
    """

    def __init__(self) -> None:
        self.elapsed = 0.0
        self.spent = self.around = 0.0
        self.expected: float | None = None
        self.has_moved: bool | None = None
        self._steps = 0
        self._recorded = 0
        self._plain: deque[float] = deque(maxlen=_PLAIN)
        self._extra: deque[float] = deque(maxlen=_RECORDED)
        self._before_plain: list[float] = []
        self._compiled: dict[bool, float] = {}
        self._rented = (0, 0.0)

    def took(
        self, seconds: float, *, recorded: bool, own: float = 0.0, rented: bool = False, first: bool = False
    ) -> None:
        """Adds the duration of one execution, including the recorder's work for it.

        `own` are the seconds that the recorder took before and after it: the cost of a plain execution. One that is
        `rented` ran in its recorded form because that is cheaper than to compile another form. The `first` execution of
        a function includes tracing and compilation.
        """
        self._steps += 1
        if rented:
            self._rented = (self._rented[0] + 1, self._rented[1] + seconds)
            self.expected = 0.0  # it would have been recorded at no further cost
            return
        self._recorded += recorded
        if first or recorded not in self._compiled:
            self._compiled[recorded] = self._compiled.get(recorded, 0.0) + seconds
            return
        self.elapsed += seconds
        if recorded:
            self._before_plain.append(seconds)
        else:
            self._plain.append(seconds)
            self.around += own
        if self._plain and (self._before_plain or self.expected is None):
            self._settle()

    @property
    def spent_so_far(self) -> float:
        """`spent`, and the whole time of recorded executions whose extra time is not known yet."""
        return self.spent + sum(self._before_plain)

    def cost(self) -> Cost:
        """The cost so far."""
        usual = (median(self._plain) if self._plain else 0.0) + (self.expected or 0.0)
        count, seconds = self._rented
        rent = seconds - count * median(self._plain) if self._plain else 0.0
        set_up = max(self._compiled.get(True, 0.0) - usual, 0.0) + max(rent, 0.0)
        return Cost(self._steps, self._recorded, self.elapsed, self.spent + self.around, set_up)

    def _settle(self) -> None:
        """The extra time of recorded executions is known once there is a plain one."""
        for seconds in self._before_plain:
            extra = max(seconds - median(self._plain), 0.0)
            self._extra.append(extra)
            self.spent += extra
        self._before_plain.clear()
        self.expected = median(self._extra) if self._extra else 0.0
