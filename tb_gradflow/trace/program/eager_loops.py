"""Records the steps of loops that take a gradient eagerly, outside of any function.

Such a loop does not mark where its step begins or ends. A step begins where its outermost tape opens, and ends when
optimizers have updated all variables that got a gradient; or, if the loop updates them without an optimizer, when the
next outermost tape opens or another training begins. Tapes that open at the same line are steps of one run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import record

from tb_gradflow.record.report import Diagnosis
from tb_gradflow.record.schema import Trace, Trials
from tb_gradflow.trace.eager.loop_body import Opened, body_of, opened_in
from tb_gradflow.trace.graph.variables import Variables
from tb_gradflow.trace.log.findings import Attempt
from tb_gradflow.trace.log.recorder import Tracing, fault_message
from tb_gradflow.trace.log.watched_run import WatchedRun
from tb_gradflow.trace.observed.kept_step import step_of_statements
from tb_gradflow.trace.program import hooks
from tb_gradflow.trace.program.recording import Recording
from tb_gradflow.trace.protection.attention import claim, is_left_alone, is_over_elsewhere, release
from tb_gradflow.trace.protection.beside import surely
from tb_gradflow.trace.protection.faults import report, reported
from tb_gradflow.trace.protection.foreign import faults
from tb_gradflow.trace.protection.functions import protected
from tb_gradflow.trace.protection.warning import warn
from tb_gradflow.trace.source.user_line import is_users, name_of_line
from tb_gradflow.trace.step.broken_weights import BrokenWeights
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep, OpenStep
from tb_gradflow.trace.step.settings import Settings

MOST_VAIN_LOOKS = 3
"""After this many tapes at a line without a gradient request, tapes at that line are no longer observed."""


class _OfThread(threading.local):
    tapes = 0
    taking = 0
    opened_at = ("", 0)
    loop: Loop | None = None


_of_thread = _OfThread()


def install(tensorflow: Any) -> None:
    """Permanently replaces the functions that open and close a tape."""
    kind = tensorflow.GradientTape
    entering = protected(vars(kind)["__enter__"], _entering, report)
    leaving = protected(vars(kind)["__exit__"], _leaving, report)
    # Both or none: one counts the open tapes up, the other down.
    kind.__enter__, kind.__exit__ = entering, leaving


def open_tape() -> tuple[str, int] | None:
    """The file and line that opened the outermost eager tape of this thread; None if none is open."""
    return _of_thread.opened_at if _of_thread.tapes > 0 else None


def is_open() -> bool:
    """Whether an eager step of this thread is being recorded, and may go on."""
    return _of_thread.loop is not None and _of_thread.loop.is_open


def is_part_of_a_step() -> bool:
    """Whether this thread runs code inside an eager tape, code that computes a gradient, such as that of a
    `tf.recompute_grad`, or one of several replicas, which is not the whole step.
    """
    return _of_thread.tapes > 0 or _of_thread.taking > 0 or is_one_of_several()


@contextlib.contextmanager
def taking_gradient() -> Iterator[None]:
    """While the context is open, a tape of this thread is computing a gradient."""
    _of_thread.taking += 1
    try:
        yield
    finally:
        _of_thread.taking -= 1


def is_one_of_several() -> bool:
    """Whether this thread runs one of several replicas."""
    if not tf.distribute.has_strategy():
        return False
    replica = tf.distribute.get_replica_context()
    return replica is not None and replica.num_replicas_in_sync > 1


def close() -> None:
    """Ends any eager step of this thread, because another training begins."""
    loop, _of_thread.loop = _of_thread.loop, None
    if loop is not None:
        # The other training may be a function that is being traced.
        with tf.init_scope():
            loop.attempt(loop.ends)


def close_others(recording: Recording) -> None:
    """Ends the eager steps of other threads, because the recording ends."""
    for loop in list(recording.loops.values()):
        with reported(), record.stop_recording():
            loop.ends_elsewhere()


def leave_to_parent(recording: Recording) -> None:
    """Drops the eager steps of a process in its fork. What they still do there would be measured by ops of TensorFlow,
    whose threads a fork does not have: it would wait for them forever."""
    _of_thread.loop = None
    for loop in list(recording.loops.values()):
        with reported():
            loop.leaves_to_parent()


def is_recorded_by_its_author() -> None:
    """Called when the program has called `summary.gradients`."""
    if _of_thread.loop is not None:
        _of_thread.loop.leave_alone()


def _entering(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def enter(self: Any) -> Any:
        if tf.executing_eagerly() and not is_left_alone():
            recording = hooks.current()
            if recording is not None and not is_part_of_a_step():
                with reported():
                    _begin(recording, sys._getframe(2))  # 1 protects this function
            result = original(self)
            if _of_thread.loop is not None:
                _of_thread.loop.waits_for(self)
            if _of_thread.tapes == 0:
                frame = sys._getframe(2)
                _of_thread.opened_at = frame.f_code.co_filename, frame.f_lineno
            _of_thread.tapes += 1
            vars(self)["_tb_gradflow_counted"] = True
            return result
        return original(self)

    return enter


def _leaving(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def leave(self: Any, *error: Any) -> Any:
        result = original(self, *error)
        if vars(self).pop("_tb_gradflow_counted", False):
            _of_thread.tapes -= 1
            if _of_thread.loop is not None and _of_thread.tapes == 0 and error and error[1] is not None:
                _of_thread.loop.attempt(_of_thread.loop.abandon, error[1])
        return result

    return leave


def _begin(recording: Recording, frame: FrameType) -> None:
    """Called when the outermost tape of a step opens at a line."""
    close()
    loops: dict[tuple[CodeType, int], Loop] = recording.loops
    place = (frame.f_code, frame.f_lineno)
    loop = loops.get(place)
    if loop is None:
        loop = loops[place] = Loop(recording, _name(frame), frame.f_code)
    if not loop.is_left_alone:
        _of_thread.loop = loop
        loop.begins(frame)


def _name(frame: FrameType) -> str:
    """The user's own line, if a different one opens the tape."""
    found: FrameType | None = frame
    while found is not None and not is_users(found.f_code.co_filename):
        found = found.f_back
    found = found or frame
    return name_of_line(found.f_code.co_filename, found.f_lineno)


class Loop:
    """The steps whose outermost tape opens at one line.

    Attributes:
        is_left_alone: Whether no more of its steps are recorded.
    """

    def __init__(self, recording: Recording, name: str, code: CodeType) -> None:
        self.recording = recording
        self.is_left_alone = False
        self._name = name
        self._code = code
        self._ending = threading.Lock()
        # Several threads may run these steps: which has recorded one that is not counted yet, and of which such a step
        # was counted without it.
        self._uncounted: threading.Thread | None = None
        self._counted: set[threading.Thread] = set()
        self._owner: threading.Thread | None = None
        self._run: WatchedRun | None = None
        self._open: OpenStep | None = None
        # Of the step that is recorded now, if its fixes may be tried.
        self._opened_in: Sequence[Opened] = ()
        self._before: Sequence[tuple[Any, Any]] = ()
        self._losses: Sequence[float] = ()
        self._recorded = False
        self._has_steps = False
        self._began = 0.0
        self._vain = 0
        self._known: list[tuple[Any, Any]] = []
        self._unasked: list[weakref.ref[Any]] = []
        self._instrumented: InstrumentedStep | None = None
        self._tracing: Tracing | None = None
        self._broken: BrokenWeights | None = None

    @property
    def is_open(self) -> bool:
        """Whether a step of it is being recorded."""
        return self._open is not None

    def leave_alone(self) -> None:
        """Called if the program records this loop itself."""
        self.abandon()
        self.is_left_alone = True
        if self._run is not None:
            self._run.discard()
            self._run = None

    def begins(self, frame: FrameType) -> None:
        """Called when the step's outermost tape opens in a function of the program."""
        self._began = time.perf_counter()
        self._recorded = False
        self._unasked = []
        if self._run is not None:
            self._run.begins()
        if self._is_due() and claim(self._code, self.ends_elsewhere):
            try:
                self._count_before()
                self._owner = threading.current_thread()
                self._open = self._opened()
                asked = self.recording.options["try_fixes"]
                # Unless it is asked for, only the first step is diagnosed; later it would keep old tensors alive.
                if asked is True or (asked and not self._has_steps):
                    self._opened_in = opened_in(frame)
            finally:
                if self._open is None:
                    release()

    def _is_due(self) -> bool:
        if self._run is None or self._run.is_due():
            return True
        return self._broken is not None and self._broken.are_found()

    def waits_for(self, tape: Any) -> None:
        """Called when a tape opens. Until it has been asked for a gradient, the step goes on: two networks may be
        updated one after the other, each by a tape of its own."""
        if self._open is not None:
            self._unasked.append(weakref.ref(tape))

    def ends(self) -> None:
        """Called when the step is over at the latest."""
        self._finish()
        here = threading.current_thread()
        if here in self._counted:
            self._counted.remove(here)
            return
        if self._uncounted is here:
            self._uncounted = None
        if self._run is not None:
            self._run.completed(time.perf_counter() - self._began, recorded=self._recorded)

    def _count_before(self) -> None:
        """Called when the next step is to be recorded. Another thread has not noticed yet that its own is over: it
        would have the same number."""
        before, self._uncounted = self._uncounted, None
        if before is not None and before is not threading.current_thread() and self._run is not None:
            self._counted.add(before)
            self._run.completed(time.perf_counter() - self._began, recorded=True)

    def ends_elsewhere(self) -> None:
        """Called in another thread: the step is over, or nothing is recorded any more."""
        if is_over_elsewhere():
            self._finish()
        else:
            self.abandon()

    def attempt(self, action: Callable[..., None], *args: Any) -> None:
        """Does something about its step; if that fails, its recording ends."""
        try:
            action(*args)
        except faults() as fault:
            surely(self.abandon)
            self._failed(fault)

    def leaves_to_parent(self) -> None:
        """Called in a forked process."""
        self._ending = threading.Lock()  # a thread of the parent may hold the other one
        self.abandon()

    def _refuses(self, error: BaseException) -> None:
        """Called when an optimizer has raised. A later step is recorded all the same, with the gradients that the
        optimizer refused: the log would otherwise end with the step before, in which nothing was wrong."""
        if self._has_steps:
            self._finish()
        else:
            self.abandon(error)

    def _opened(self) -> OpenStep | None:
        if self._instrumented is None:
            self._instrumented = self._instrument()
        step = self._instrumented.opened()
        if step is not None:
            # Only for this step's collector: in no other kind of step does an update end the step, so the class has no
            # hook for it.
            collector = step.collector
            try:
                vars(collector).update(
                    applying=self._noting_updates(step, collector.applying),
                    gradient=self._noting_requests(collector.gradient),
                )
            except BaseException:
                step.patches.close()
                raise
        return step

    def _instrument(self) -> InstrumentedStep:
        def known() -> Any:
            return [
                dataclasses.replace(owned, variable=variable)
                for owned, kept in self._known
                if (variable := kept()) is not None
            ]

        options = self.recording.options
        settings = Settings(options["tensors"], bool(options["source"]), terms=bool(options["terms"]))
        return InstrumentedStep(lambda: None, lambda: Variables(known), settings, self._on_trace, on_fault=self._failed)

    def _noting_requests(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def gradient(ask: Callable[..., Any], tape: Any, *rest: Any, **named: Any) -> Any:
            self._unasked = [each for each in self._unasked if each() not in (None, tape)]
            try:
                return original(ask, tape, *rest, **named)
            except Exception:
                raise  # the answer of the tape
            except BaseException:  # the program is interrupted, and there is no answer
                self.abandon()
                raise

        return gradient

    def _is_over(self, collector: Any) -> bool:
        return _is_updated(collector) and not any(each() is not None for each in self._unasked)

    def _noting_updates(self, step: OpenStep, original: Callable[..., Any]) -> Callable[..., Any]:
        depth = 0

        def applying(apply: Callable[[], Any], *rest: Any, **named: Any) -> Any:
            nonlocal depth
            refused: list[Exception] = []

            def by_optimizer() -> Any:
                try:
                    return apply()
                except faults() as error:
                    refused.append(error)
                    raise

            depth += 1
            try:
                result = original(by_optimizer, *rest, **named)
            except faults() as error:
                if depth == 1 and error in refused:  # any other is a fault of the recorder
                    self.attempt(self._refuses, error)
                raise
            finally:
                depth -= 1
            self.attempt(self._finish_if_over, step, depth)
            return result

        return applying

    def _finish_if_over(self, step: OpenStep, depth: int) -> None:
        if depth == 0 and self._open is step and self._is_over(step.collector):
            self._finish()

    def _finish(self) -> None:
        step = self._taken()
        if step is None:
            return
        try:
            calls, fault = step.collector.calls, step.collector.fault
            if step.is_lost or (not calls and fault is None):
                step.abandon()
                self._vain += 1
                self.is_left_alone = self._run is None and self._vain >= MOST_VAIN_LOOKS
                return
            self._remember(step.collector)
            if fault is None and all(map(_is_refused, calls)):
                step.abandon(step.collector.raised)
                return
            measured = step.closed((), {})
            if self._opened_in:
                self._before, self._losses = step.before, [float(each) for each in measured.get("losses", ())]
            if self._run is not None and measured and not self._run.protection.is_over:
                self._recorded = self._has_steps = True
                self._uncounted = self._owner
                self._run.protection.attempt(self._run.write, measured, self._tracing)
            self.is_left_alone = self._run is None or self._run.protection.is_over
        finally:
            self._opened_in, self._before, self._losses = (), (), ()
            step.patches.close()  # even if something fails above
            release()

    def abandon(self, error: BaseException | None = None) -> None:
        """The step is not recorded. If the user's error is the reason, what was observed until then is reported."""
        step = self._taken()
        if step is not None:
            try:
                if error is not None:
                    self._remember(step.collector)
                step.abandon(error)
            finally:
                self._opened_in = ()
                release()
        elif error is not None and self._tracing is not None:
            self._tracing.raised_later(error)

    def _taken(self) -> OpenStep | None:
        """The open step, for the one that ends it."""
        with self._ending:
            step, self._open = self._open, None
            return step

    def _keep(self) -> Attempt:
        """Keeps the step that was recorded last."""
        body = body_of(self._opened_in, sys._getframe())
        kept = step_of_statements([kept() for _, kept in self._known], self._before)
        name, losses = self._name, self._losses

        def attempt(step: int, until: float | None, recorded: Diagnosis | None) -> Trials:
            from tb_gradflow.trace.explain.one_step import explain_statements  # which takes long to load
            from tb_gradflow.trace.explain.trials import trials_of

            with kept.restored():
                return trials_of(lambda: explain_statements(body, name), step, until, losses, recorded)

        return Attempt(attempt, repeats_python=True)

    def _remember(self, collector: Any) -> None:
        """Drops what the step has read. A loop must not keep alive what its program has released."""
        lasting = [owned for owned in collector.variables if _lasts(owned)]
        self._known = [(_without(owned), weakref.ref(owned.variable)) for owned in lasting]
        if self.recording.options["catch_nonfinite"]:
            self._broken = self._broken or BrokenWeights()
            self._broken.watch(lasting)

    def _on_trace(self, trace: Trace, error: BaseException | None) -> None:
        if self._run is None or self._tracing is None:
            self._run = self.recording.run(self._name)
            self._run.options.cadence.is_eager = True
            self._tracing = Tracing(self._run.recorder(self._name, self._keep))
        asked = {each.variable for each in trace.variable_gradients if each.outcome != "not_asked"}
        # The first step builds layers, as any first call of a model does. Only a later step shows whether it creates
        # them anew.
        listed = tuple(
            dataclasses.replace(variable, tracked=number in asked, made=variable.made and self._has_steps)
            for number, variable in enumerate(trace.variables)
        )
        self._tracing.finished(dataclasses.replace(trace, variables=listed), error)

    def _failed(self, fault: Exception) -> None:
        self.is_left_alone = True
        if self._run is not None:
            self._run.protection.ends(fault)
        else:
            warn(fault_message(0, fault))


def _is_updated(collector: Any) -> bool:
    """Whether optimizers have received all variables for which a gradient was requested, if there are any."""
    asked = {index for call in collector.calls for index, answer in call.variables.items() if answer.outcome == "value"}
    given = {collector.variables.index_of(each.variable) for applied in collector.applied for each in applied.given}
    return bool(asked) and asked <= given


def _is_refused(call: Any) -> bool:
    """Whether the tape raised an error for a request instead of a result."""
    return bool(call.variables) and all(answer.outcome == "error" for answer in call.variables.values())


def _lasts(owned: Any) -> bool:
    """Whether a later step may use it again: a tensor exists only in its own step."""
    return isinstance(owned.variable, tf.Variable)


def _without(owned: Any) -> Any:
    return dataclasses.replace(owned, variable=None)
