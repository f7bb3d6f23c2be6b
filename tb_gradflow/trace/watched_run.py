"""The log of a step that is watched, and how far its training is."""

from __future__ import annotations

import weakref
from typing import Any

import keras

from tb_gradflow.trace.caught import Guarding
from tb_gradflow.trace.options import Options
from tb_gradflow.trace.recorder import Identity, Recorder, Tracing, fault_message, index_of, warn
from tb_gradflow.trace.workers import in_step_with_others, recorder_for


class WatchedRun:
    """One log, and how far the training is."""

    def __init__(self, options: Options, *, compiles: bool) -> None:
        """`compiles` says that the step was not compiled before it was watched."""
        self.options = options
        self.compiles = compiles
        self.broken = False
        self._recorder: Recorder | None = None
        self._step = 0

    def recorder(self, name: str) -> Recorder:
        if self._recorder is None:
            identity = Identity(name, keras.__version__, self.options.expected)
            self._recorder = recorder_for(self.options.log_dir, identity)
            self._recorder.meter = self.options.cadence.meter
            weakref.finalize(self, self._recorder.flush)
        return self._recorder

    def flush(self) -> None:
        if self._recorder is not None:
            self._recorder.flush()

    def is_due(self) -> bool:
        if self._step == 0:
            self.options = in_step_with_others(self.options)
        return self.options.cadence.is_due(self._step, self._step == 0)

    def completed(self, seconds: float, *, recorded: bool) -> None:
        self._step += 1
        self.options.cadence.meter.took(seconds, recorded=recorded)

    def write_caught(self, guard: Guarding, tracing: Tracing, ran: int) -> None:
        """A step has a gradient that is not finite; `ran` of the latest are not completed yet."""
        try:
            found = guard.measure()
        except Exception as error:
            self.tell_fault(error)
        else:
            if found is not None:
                self.write(found.values, tracing, self._step + ran - found.ago, tell=True)

    def write(self, values: dict[str, Any], tracing: Tracing, step: int | None = None, *, tell: bool = False) -> None:
        try:
            assert self._recorder is not None
            self._recorder.add_step(
                self._step if step is None else step, tracing.indices[index_of(values)], values, tell=tell
            )
        except Exception as error:  # a fault of the recorder must never reach the training
            self.broken = True
            self.tell_fault(error)

    def tell_fault(self, error: Exception) -> None:
        warn(fault_message(self._step, error))
