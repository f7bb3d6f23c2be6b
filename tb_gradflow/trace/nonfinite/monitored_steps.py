"""The life cycle of a non-finite monitor, the same for `fit` and for a watched step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tb_gradflow.trace.nonfinite.monitor import CaughtStep, NonfiniteMonitor
from tb_gradflow.trace.protection.training import Execution, Report


class MonitoredSteps:
    """The steps between recorded ones.

    A monitor starts after the first recorded step. It ends when it has caught a step, which it does once, or when it
    fails: then the user's own function runs between recorded steps.

    Args:
        is_wanted: Whether a monitor is to run at all.
        record: Called with the step that was caught.
        report: Called with a fault of the monitor. See `Report`.
    """

    def __init__(self, *, is_wanted: bool, record: Callable[[CaughtStep], None], report: Report) -> None:
        self._may_start = is_wanted
        self._record = record
        self._report = report
        self._monitor: NonfiniteMonitor | None = None

    @property
    def is_running(self) -> bool:
        """Whether a monitor runs the steps between recorded ones."""
        return self._monitor is not None

    def start(self, select: Callable[[], NonfiniteMonitor | None]) -> None:
        """After each recorded step; the first call starts the monitor that `select` returns, if it returns one."""
        if self._may_start:
            self._may_start = False
            self._monitor = select()

    def run(self, execution: Execution, /, *args: Any, **kwargs: Any) -> None:
        """Runs a step, or one execution of several, with the monitor. A fault of that ends the monitor."""
        assert self._monitor is not None
        execution.ends = self._end
        self._monitor.run(execution, *args, **kwargs)
        if self._monitor.fault is not None:
            self._end(self._monitor.fault)

    def step_ended(self) -> None:
        """After a monitored step, once it is counted: records a caught step, perhaps some steps late."""
        if self._monitor is not None:
            self._record_if(self._monitor, self._monitor.caught_by_now)

    def settle(self) -> None:
        """Before anything other than the next monitored step changes the model: records a caught step."""
        if self._monitor is not None:
            self._record_if(self._monitor, self._monitor.settled)

    def _record_if(self, monitor: NonfiniteMonitor, has_caught: Callable[[], bool]) -> None:
        try:
            if not has_caught():
                return
            self._monitor = None
            caught = monitor.measure()
        except Exception as fault:
            self._end(fault)
            return
        if caught is not None:
            self._record(caught)

    def _end(self, fault: Exception, cost: str = "") -> None:
        self._monitor = None
        self._report(fault, cost)
