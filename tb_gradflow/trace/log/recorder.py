"""Writes the measurements of instrumented steps into the log, and prints the first findings in the terminal."""

from __future__ import annotations

import logging
import os
import posixpath
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

from tb_gradflow.analyse.diagnose import diagnose
from tb_gradflow.errors import SetupError
from tb_gradflow.record.checks import MOST_OPS
from tb_gradflow.record.report import Diagnosis
from tb_gradflow.record.schema import (
    FORMAT,
    GRADIENT_STATISTICS,
    VARIABLE_STATISTICS,
    Session,
    StepRecord,
    Trace,
    Trials,
)
from tb_gradflow.store.directory import DirectoryReader
from tb_gradflow.store.elsewhere import is_elsewhere
from tb_gradflow.store.layout import PLUGIN, event_file_path
from tb_gradflow.store.run import StoredRun
from tb_gradflow.store.thinning import thin
from tb_gradflow.store.writer import VOLUME_CAP_BYTES, LogWriter
from tb_gradflow.trace.log.findings import Findings
from tb_gradflow.trace.log.meter import Meter
from tb_gradflow.trace.log.raised import with_failure, with_raised
from tb_gradflow.trace.log.unsettled import Unsettled, is_settled_later
from tb_gradflow.trace.protection.foreign import faults, suppressed
from tb_gradflow.trace.step.forward_values import step_values
from tb_gradflow.trace.tf_internals.raised_by import is_index_outside
from tb_gradflow.trace.tf_internals.versions import keras_version
from tb_gradflow.version import VERSION

_LOGGER = logging.getLogger("tb_gradflow")

_UPDATE = VARIABLE_STATISTICS.index("update_norm")

MANY_TRACES = 16
"""An eager step has a separate trace for each batch size. Above this number, steps of other batch sizes are recorded
under a trace that is otherwise the same.
"""

MOST_TRACES = 256


def new_session(name: str, *, keras: str | None = None, expected: tuple[str, ...] = ()) -> Session:
    """A session that begins now, of the model or function `name`; with Keras 3, if no version of Keras is given."""
    return Session(
        format=FORMAT,
        id=f"{time.time_ns() // 1_000_000:013d}",
        tool=VERSION,
        tensorflow=tf.__version__,
        keras=keras_version() if keras is None else keras,
        model=name,
        expected=expected,
        seed=context.global_seed(),
    )


def record_of(measurements: Mapping[str, Any], trace: int, step: int = 0) -> StepRecord:
    """The statistics of one step: those that `step.InstrumentedStep` returned."""
    return StepRecord(
        trace=trace,
        step=step,
        wall_time=time.time(),
        losses=tuple(float(value) for value in np.ravel(measurements["losses"])),
        gradients=np.ascontiguousarray(measurements["gradients"], "<f4").tobytes(),
        variables=np.ascontiguousarray(measurements["variables"], "<f4").tobytes(),
        values=step_values(measurements, step),
    )


class Recorder:
    """One session of one log. The event file is created when there is something to write, and replaced by one with
    every second step when it has reached its size limit.

    Attributes:
        meter: Measures the cost of recording; None if it is not measured.
        findings: What follows from findings; None if nothing does.
        settles_later: Whether an error is reported only when it is known that the program does not catch it.
        has_failed: Whether a step that raised was recorded: once, since a program may catch what each step raises.
    """

    def __init__(self, log_dir: str, session: Session, *, cap_bytes: int = VOLUME_CAP_BYTES) -> None:
        self.meter: Meter | None = None
        self.findings: Findings | None = None
        self.settles_later = False
        self.has_failed = False
        self._unsettled: Unsettled | None = None
        self._log_dir = log_dir
        self._cap_bytes = cap_bytes
        self._session = session
        self._writer: LogWriter | None = None
        self._path = ""
        self._flushed = 0  # how long the file was when it was last flushed
        self._traces: list[Trace] = []
        self._noted: set[str] = set()
        self._told = False
        self._pinned: list[int] = []
        # A remote log cannot be read back as fast; there the writer keeps fewer steps from its size limit on.
        self._may_thin = not is_elsewhere(log_dir)

    def add_trace(self, trace: Trace) -> int:
        """Records a trace, once; returns the number under which its steps are recorded."""
        if len(trace.ops) > MOST_OPS:
            raise ValueError(f"the step has {len(trace.ops):,} ops, and a log holds at most {MOST_OPS:,}")
        for known in self._traces:
            if replace(trace, index=known.index) == known:
                return known.index
        if len(self._traces) >= MANY_TRACES:
            for known in self._traces:
                if _sizeless(trace) == _sizeless(known):
                    return known.index
        if len(self._traces) >= MOST_TRACES:
            raise ValueError(f"a log holds at most {MOST_TRACES} different traces of a step: this is one more")
        numbered = replace(trace, index=len(self._traces))
        self._traces.append(numbered)
        self._open().write_trace(numbered)
        return numbered.index

    @property
    def last_trace(self) -> Trace | None:
        """The one that was recorded last."""
        return self._traces[-1] if self._traces else None

    def raised(self, trace: Trace, error: BaseException, *, is_final: bool) -> None:
        """A step with this trace has raised an error; if it `is_final`, it does not matter whether the program catches
        it. It cannot be the regular end of a loop if no step was completed before."""
        if self.settles_later and self._pinned and not is_final and is_settled_later():
            self._unsettled = Unsettled(trace, type(error), str(error))
        else:
            self._failed(trace)

    def step_begins(self) -> None:
        """Another step begins: the program has caught what an earlier one has raised."""
        self._unsettled = None

    def settle(self, *, has_ended: bool) -> None:
        """Reports the error of the last step, unless the program `has_ended` otherwise."""
        last, self._unsettled = self._unsettled, None
        if last is not None and (not has_ended or last.ends_the_program):
            self._failed(last.trace)

    def _failed(self, trace: Trace) -> None:
        self.has_failed = True
        self.add_failed_trace(trace)

    def add_failed_trace(self, trace: Trace) -> None:
        """Records the trace of a step that raised, and reports what is wrong with it."""
        index = self.add_trace(trace)
        self._tell_notes(trace)
        self._tell(-1, partial(diagnose, self._traces[index], self._session, None, None, (), -1))

    def add_step(self, step: int, trace: int, measurements: dict[str, Any], *, tell: bool = False) -> None:
        """Records the statistics of one step: see `record_of`. The first one is analysed and reported in the terminal,
        others if `tell` is true.
        """
        self._tell_notes(self._traces[trace])
        record = record_of(measurements, trace, step)
        writer = self._open()
        norms = np.frombuffer(record.variables, "<f4").reshape(-1, len(VARIABLE_STATISTICS))
        if self.meter is not None:
            writer.write_cost(self.meter.cost())
            self.meter.has_moved = bool(self.meter.has_moved) or bool(np.any(norms[:, _UPDATE] > 0))
        writer.write_step(record)
        if tell or record.values is not None or not self._pinned:
            self._pinned.append(step)
        if writer.is_full and self._may_thin:
            self._thin(writer)
        if self.findings is not None:
            self.findings.recorded(self, step, record.losses)
        if tell or not self._told or (self.findings is not None and self.findings.follows_all):
            gradients = np.frombuffer(record.gradients, "<f4").reshape(-1, len(GRADIENT_STATISTICS))
            known, losses, values = self._traces[trace], record.losses, record.values
            judged = partial(diagnose, known, self._session, gradients, norms, losses, step, values=values)
            self._tell(step, judged, aloud=tell or not self._told)

    def _tell_notes(self, trace: Trace) -> None:
        """Once for each trace that a step has run: a step that creates variables is traced twice, and runs the second
        trace.
        """
        for note in set(trace.notes) - self._noted:
            _LOGGER.warning("tb_gradflow: %s", note)
        self._noted.update(trace.notes)

    def add_trials(self, trials: Trials) -> None:
        """Records what was tried when the program had ended."""
        self._open().write_trials(trials)
        self.finish()

    def flush(self) -> None:
        """Makes everything recorded so far readable."""
        if self._writer is None:
            return
        before = self._length()
        self._writer.flush()
        now = self._length()
        if now is None:
            self._start_again("deleted", "its content is lost")
        elif before is not None and before < self._flushed:
            self._start_again("truncated", "part of its content is lost")
        else:
            self._flushed = now

    def flush_if_due(self) -> None:
        """The same if something has waited long enough; to be called after steps that are not recorded."""
        if self._writer is not None and self._writer.is_due:
            self.flush()

    def finish(self) -> None:
        """Writes the buffer for the last time; if the log was deleted since then, does not start a new one."""
        with suppressed():
            self.settle(has_ended=True)
        with suppressed():
            if self._writer is not None:
                self._writer.flush()

    def flush_at_end_of(self, owner: object) -> Callable[[], object]:
        """Writes the buffer when the owner is deleted or the process ends: an interrupted training does not announce
        its end. Returns a function that cancels this."""
        return weakref.finalize(owner, _flush_in, os.getpid(), self).detach

    def _length(self) -> int | None:
        """How long the file is, in bytes; `None` if it is gone."""
        try:
            return int(tf.io.gfile.stat(self._path).length)
        except tf.errors.NotFoundError:
            return None

    def _start_again(self, happened: str, lost: str) -> None:
        _LOGGER.warning(
            "tb_gradflow: the log %s was %s during the training; %s, and the following steps go into a new log.",
            self._path,
            happened,
            lost,
        )
        self._writer = None
        self._flushed = 0
        for trace in self._traces:
            self._open().write_trace(trace)

    def _open(self) -> LogWriter:
        if self._writer is None:
            self._path = event_file_path(self._log_dir)
            tf.io.gfile.makedirs(posixpath.dirname(self._path))
            self._writer = LogWriter(self._session, tf.io.TFRecordWriter(self._path), cap_bytes=self._cap_bytes)
        return self._writer

    def _thin(self, full: LogWriter) -> None:
        """Continues in another file and a new session, which readers take for the newest: with every second step of
        this one.
        """
        full.flush()
        later = replace(self._session, id=f"{max(time.time_ns() // 1_000_000, int(self._session.id) + 1):013d}")
        path = event_file_path(self._log_dir)
        # Every file with "tfevents" in its name is a log, for TensorBoard and for us. This one must not be before it is
        # complete: if the process were killed, half of the steps would hide the file that has all of them.
        directory, name = posixpath.split(path)
        part = posixpath.join(directory, name.replace("tfevents", "thinned"))
        try:
            sink = tf.io.TFRecordWriter(part)
            writer = LogWriter(later, sink, cap_bytes=self._cap_bytes, stride=2 * full.stride)
            log = StoredRun(DirectoryReader(posixpath.dirname(self._path)))
            thin(log, self._session.id, writer, self._pinned)
            tf.io.gfile.rename(part, path)
        except faults() as error:
            self._may_thin = False
            with suppressed():
                tf.io.gfile.remove(part)
            _LOGGER.warning("tb_gradflow: the log %s cannot be thinned (%s); it keeps growing.", self._path, error)
            return
        full.close()
        tf.io.gfile.remove(self._path)
        self._writer, self._session, self._path = writer, later, path
        self._flushed = 0

    def _tell(self, step: int, judged: Callable[[], Diagnosis], *, aloud: bool = True) -> None:
        """Reports the findings of a step: `aloud`, in the terminal. This does not affect what is recorded."""
        self._told = True
        try:
            diagnosis = judged()
            if self.findings is not None:
                self.findings.diagnosed(self, step, diagnosis)
            lines = warning_lines(diagnosis) if aloud else []
        except faults() as error:
            lines = [
                "tb_gradflow: a recorded step could not be analysed. Please report this: "
                f"{type(error).__name__}: {error}"
            ]
        for line in lines:
            _LOGGER.warning("%s", line)


def _flush_in(process: int, recorder: Recorder) -> None:
    """Does nothing in a forked process: otherwise both processes would write the same steps."""
    if os.getpid() == process:
        recorder.finish()


class SilentRecorder(Recorder):
    """Writes nothing: for a log that cannot be written."""

    def add_trace(self, trace: Trace) -> int:
        return 0

    def add_failed_trace(self, trace: Trace) -> None:
        pass

    def add_step(self, step: int, trace: int, measurements: dict[str, Any], *, tell: bool = False) -> None:
        pass


def index_of(measurements: dict[str, Any]) -> int:
    """The trace of an instrumented step to which its statistics belong."""
    return int(np.ravel(measurements["trace"])[0])


def _sizeless(trace: Trace) -> Trace:
    """The trace without the shapes of tensors."""

    def of(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(replace(tensor, shape=None) for tensor in tensors)

    ops = tuple(replace(op, outputs=of(op.outputs), given=of(op.given)) for op in trace.ops)
    return replace(trace, index=0, ops=ops)


class Tracing:
    """The recorded trace of each compiled version of the step."""

    def __init__(self, recorder: Recorder | None = None) -> None:
        self.indices: dict[int, int] = {}
        self._recorder = recorder

    def finished(self, trace: Trace, error: BaseException | None) -> None:
        assert self._recorder is not None
        if error is None:
            self.indices[trace.index] = self._recorder.add_trace(trace)
        elif not self._recorder.has_failed:
            is_at_gradient = any(each.outcome == "error" for each in trace.variable_gradients)
            failed = with_failure(trace, error) if is_at_gradient else with_raised(trace, error)
            self._recorder.raised(failed, error, is_final=is_at_gradient)

    def raised_later(self, error: BaseException) -> None:
        """A step has raised that was not recorded: an op of the last trace was given an index outside of what it
        indexes. Other errors say themselves what is wrong."""
        last = self._recorder.last_trace if self._recorder is not None else None
        if last is not None and is_index_outside(error):
            self.finished(last, error)


def fault_message(step: int, fault: Exception) -> str:
    """The warning when the recorder fails at a step, or finds there that it cannot record such a training."""
    if isinstance(fault, SetupError):
        return f"tb_gradflow does not record this training: {fault}"
    return (
        f"tb_gradflow could not record step {step} and stopped recording; training continues. Please report "
        f"this: {type(fault).__name__}: {fault}"
    )


_MOST_LINES = 3


def warning_lines(diagnosis: Diagnosis) -> Sequence[str]:
    """The terminal lines about a first step: its errors and warnings, a line each; none if it is healthy."""
    loud = [finding for finding in diagnosis.findings if finding.severity in ("error", "warning")]
    lines = [f"tb_gradflow: {finding.message} {finding.fix}".rstrip() for finding in loud[:_MOST_LINES]]
    if len(loud) > _MOST_LINES:
        lines.append(f'tb_gradflow: {len(loud) - _MOST_LINES} more findings are in TensorBoard\'s tab "Gradient flow".')
    return lines


def check_directory(log_dir: str) -> None:
    """Raises SetupError if no file can be written below `log_dir`."""
    directory = posixpath.join(log_dir, PLUGIN)
    probe = posixpath.join(directory, f".probe-{time.time_ns()}")
    try:
        tf.io.gfile.makedirs(directory)
        with tf.io.gfile.GFile(probe, "w") as file:
            file.write("")
        tf.io.gfile.remove(probe)
    except (tf.errors.OpError, OSError) as error:
        reason = error.message if isinstance(error, tf.errors.OpError) else str(error)
        raise SetupError(
            f"cannot write to log_dir {log_dir!r} ({reason}): give a directory that this process may write to"
        ) from error
