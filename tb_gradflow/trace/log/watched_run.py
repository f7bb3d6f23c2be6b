"""The log of one training, and its progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from tb_gradflow.trace.log.findings import Findings, Keep, never_kept
from tb_gradflow.trace.log.options import Options
from tb_gradflow.trace.log.recorder import Recorder, SilentRecorder, Tracing, fault_message, index_of, new_session
from tb_gradflow.trace.protection.foreign import suppressed
from tb_gradflow.trace.protection.training import Protection
from tb_gradflow.trace.protection.warning import warn
from tb_gradflow.trace.step.workers import writes_log


class OnDemand(Protocol):
    """A directory of a log that is created when there is something to write."""

    def begin(self) -> str | None:
        """Creates it; `None` if that is impossible."""

    def drop(self) -> None:
        """Removes it."""


class WatchedRun:
    """One log, and the progress of its training.

    Args:
        options: Those of the recorder.
        compiles: Whether the step was not compiled before it was watched.
        place: Where the log will be, if the options do not say it.

    Attributes:
        step: The number of steps that have run.
    """

    def __init__(self, options: Options, *, compiles: bool = False, place: OnDemand | None = None) -> None:
        self.options = options
        self.compiles = compiles
        self._place = place
        self.protection = Protection(self._report_fault, interrupted=self._written)
        self._recorder: Recorder | None = None
        self._calls_off: Callable[[], object] = lambda: None
        self.step = 0

    @property
    def is_on_demand(self) -> bool:
        """Whether there is a log only if there is something to record."""
        return self._place is not None

    def begin(self) -> None:
        """Creates the place of the log."""
        if self._place is None or self.options.log_dir:
            return
        log_dir = self._place.begin()
        if log_dir is None:
            self.protection.stop()
        else:
            self.options = replace(self.options, log_dir=log_dir)

    def recorder(self, name: str, keep: Keep = never_kept) -> Recorder:
        """`keep` keeps the last recorded step: see `Findings`."""
        if self._recorder is None:
            self.begin()
            kind = Recorder if self.options.log_dir else SilentRecorder
            self._recorder = kind(self.options.log_dir, new_session(name, expected=self.options.expected))
            self._recorder.meter = self.options.cadence.meter
            self._recorder.settles_later = True
            options = self.options
            self._recorder.findings = Findings(options.on_finding, options.try_fixes, options.share, keep)
            self._calls_off = self._recorder.flush_at_end_of(self)
        return self._recorder

    def discard(self) -> None:
        """Records nothing any more, and gives up what was not written yet."""
        self.protection.stop()
        self._recorder = None
        self._calls_off()
        if self._place is not None:
            self._place.drop()

    def flush(self) -> None:
        """Makes everything recorded so far readable, the error of the last step too."""
        self.settle(has_ended=False)
        self._written()

    def settle(self, *, has_ended: bool) -> None:
        """See `Recorder.settle`."""
        if self._recorder is not None:
            self._recorder.settle(has_ended=has_ended)

    def _written(self) -> None:
        if self._recorder is not None:
            self._recorder.flush()

    def begins(self) -> None:
        """Called before a step."""
        if self._recorder is not None:
            self._recorder.step_begins()

    def is_due(self) -> bool:
        if self.step == 0 and not writes_log():
            self.protection.stop()
            return False
        return self.options.cadence.is_due(self.step, self.step == 0)

    def completed(self, seconds: float, *, recorded: bool, rented: bool = False, first: bool = False) -> None:
        self.step += 1
        self.options.cadence.meter.took(seconds, recorded=recorded, rented=rented, first=first)
        if not recorded and self._recorder is not None:
            self._recorder.flush_if_due()

    def write(self, values: dict[str, Any], tracing: Tracing, *, tell: bool = False, step: int | None = None) -> None:
        """Writes a step, by default the one that runs now."""
        assert self._recorder is not None
        self._recorder.add_step(
            self.step if step is None else step, tracing.indices[index_of(values)], values, tell=tell
        )

    def _report_fault(self, error: Exception) -> None:
        warn(fault_message(self.step, error))
        if self._recorder is not None:
            with suppressed():  # it may be what failed
                self._recorder.flush()
        elif self._place is not None:
            self._place.drop()
