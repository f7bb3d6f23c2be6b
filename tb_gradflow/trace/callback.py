"""The Keras callback. Between recorded steps the model runs its own compiled function, unchanged."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from tb_gradflow.trace.capture.collector import Tensors
from tb_gradflow.trace.fidelity.python_constants import numbers_of
from tb_gradflow.trace.fidelity.warning import warn
from tb_gradflow.trace.fit.batch_step import last_of, whole_data
from tb_gradflow.trace.fit.callback_base import KerasCallback
from tb_gradflow.trace.fit.keras3 import Fitting, OwnFunction, TrainFunction
from tb_gradflow.trace.fit.refit import LastFit
from tb_gradflow.trace.fit.step_count import StepCount
from tb_gradflow.trace.fit.train_function import REPLACED, SET_BY_USER, is_of_the_user, keras_own, owner, put
from tb_gradflow.trace.fit.which_keras import check_backend, fitting
from tb_gradflow.trace.log.cadence import UpdateFreq
from tb_gradflow.trace.log.options import checked
from tb_gradflow.trace.log.recorder import Identity, Recorder, Tracing, fault_message, index_of
from tb_gradflow.trace.log.workers import in_step_with_others, is_one_of_several, recorder_for, unsupported
from tb_gradflow.trace.nonfinite.monitor import CaughtStep, NonfiniteMonitor, RecordedStep
from tb_gradflow.trace.nonfinite.monitor_choice import monitor_of_fit
from tb_gradflow.trace.nonfinite.monitored_steps import MonitoredSteps
from tb_gradflow.trace.nonfinite.recorded_again import RecordedAgain
from tb_gradflow.trace.protection.training import Execution, Protection, StandIn, protected_method
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep


class GradFlowCallback(KerasCallback):
    """Records the gradient flow during `fit`, for TensorBoard's tab "Gradient flow".

    On the steps chosen by `update_freq` a second compiled version of the training step runs. It updates the model
    exactly as the model's own step does, and also returns the statistics of its gradients. In all other steps the
    model's own compiled step runs. If the recorder fails after training has begun, it warns once, and training
    continues.

    Args:
        log_dir: Any path that `tf.io.gfile` can write. Events go to `<log_dir>/gradflow`.
        update_freq: `"auto"`: the first ten steps, then as often as `overhead` allows, and the last step of a fit that
            is not too short; an int `n`: every `n` steps; `"epoch"`: the first step of each epoch. With
            `steps_per_execution`, the last step of an execution is recorded.
        overhead: With `"auto"`: the share of the training time that recorded steps may add, not counting the time to
            compile them once.
        tensors: `"all"`: the gradient of every tensor between the variables and the loss; `"layers"`: of each layer's
            output; `"variables"`: of variables only. The structure is recorded in all cases.
        catch_nonfinite: Whether to record the first step that has a gradient with NaN or Inf, regardless of
            `update_freq`: the gradients of each step are checked, and that step is run again. Not available for eager
            steps or several workers.
        expected: Name patterns (fnmatch) of variables that are meant to get no gradient.
        source: Whether to keep the user's file names, line numbers and lines in the log.
        terms: Whether recorded steps also measure the gradient of each term of a loss that is a sum, with one more
            backward pass for each term. Not available with several replicas.
        examples: Whether the log may keep the batch rows in which a step stops being finite: up to eight rows, with 64
            elements each. Without it only the row numbers are kept.

    Raises:
        SetupError: an argument is wrong, or `log_dir` cannot be written.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str],
        update_freq: UpdateFreq = "auto",
        overhead: float = 0.01,
        *,
        tensors: Tensors = "all",
        catch_nonfinite: bool = True,
        expected: Sequence[str] = (),
        source: bool = True,
        terms: bool = False,
        examples: bool = False,
    ) -> None:
        super().__init__()
        check_backend()
        if is_one_of_several() and "tf_keras" not in sys.modules:
            warn(
                "tb_gradflow: `fit` of Keras 3 does not support MultiWorkerMirroredStrategy. Train with `fit` of "
                "tf_keras, or with a custom training loop under `tb_gradflow.watch`."
            )
        self._options = checked(
            log_dir, update_freq, overhead, tensors, catch_nonfinite, expected, source, terms, examples
        )
        self._began = self._ready = 0.0
        self._recorder: Recorder | None = None
        self.protection = Protection(self._report_fault, self._restored, self._written)
        # The model's own training function; None while nothing is recorded. An attribute: what reads it cannot fail.
        self.plain: TrainFunction | None = None
        self._sampled: OwnFunction | None = None
        self._monitored = self._monitored_steps(is_wanted=False)
        self._tracing = Tracing()
        self._fitting: Fitting | None = None
        self._steps = StepCount()
        self._last_fit = LastFit()
        self._first_step: int | None = None
        self._epoch = 0
        self._epoch_begins = self._postponed = self._may_postpone = False
        self._measured: dict[str, Any] | None = None
        self._execution: Execution | None = None

    @protected_method
    def on_train_begin(self, logs: Any = None) -> None:
        interrupted = owner(self.model)
        if isinstance(interrupted, GradFlowCallback) and interrupted.plain is not None:
            put(self.model, interrupted.plain)
        self.plain = None
        self._may_postpone = True
        self._prepare(_beside_this())

    @protected_method
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch, self._epoch_begins = epoch, True
        self._steps.epoch_begins(self._fitting if self.plain is not None else None)

    @protected_method
    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self.plain is None:
            return
        self._began = time.perf_counter()
        if self.model.train_function is not self.plain and not isinstance(owner(self.model), GradFlowCallback):
            self.plain = None
            warn(REPLACED)
            return
        self._steps.execution_begins(batch)
        self._measured = None
        if self._due():
            if not self._is_alone():
                return
            self._monitored.settle()
            put(self.model, self._standing_in(self._run_sampled))
        elif self._monitored.is_running:
            put(self.model, self._standing_in(self._run_monitored))
        self._epoch_begins = False
        self._ready = time.perf_counter()

    @protected_method
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self.plain is None:
            return
        done = time.perf_counter()
        put(self.model, self.plain)
        self._steps.execution_ends(batch)
        recorded = self._measured is not None
        if recorded:
            self._steps.correct()
            self._write(self._steps.now - 1)
            self._monitored.start(self._select_monitor)
        else:
            self._monitored.step_ended()
            if self._recorder is not None:
                self._recorder.flush_if_due()
        now = time.perf_counter()
        own = self._ready - self._began + now - done
        self._options.cadence.meter.took(now - self._began, recorded=recorded, own=own)

    @protected_method
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._steps.correct()
        self._flush()

    @protected_method
    def on_train_end(self, logs: Any = None) -> None:
        self._flush()
        if self.plain is not None and (fitted := self._fitting) is not None:
            self._last_fit.ends(self.model, fitted)
        self.plain = None

    def goes_on_with(self, model: Any) -> bool:
        """Whether a training with the model's current function is in progress."""
        return self.plain is not None and model.train_function is self.plain

    @protected_method
    def flush(self) -> None:
        """Everything recorded so far can be read when this returns; `fit` does this at the end of each epoch."""
        self._flush()

    def _flush(self) -> None:
        self._monitored.settle()
        if self._recorder is not None:
            self._recorder.flush()

    def _prepare(self, beside: Sequence[Any] | None) -> None:
        fitted = fitting(self.model, beside)
        reason = SET_BY_USER if is_of_the_user(self.model) else unsupported(fitted.strategy, fitted.is_eager)
        if reason:
            warn(f"tb_gradflow does not record this training: {reason}")
            return
        self._fitting = fitted
        fitted.build()
        if self._recorder is None:
            self._options = in_step_with_others(self._options)
            identity = Identity(str(self.model.name), fitted.keras, self._options.expected)
            self._recorder = recorder_for(self._options.log_dir, identity)
            self._recorder.meter = self._options.cadence.meter
            self._recorder.flush_at_end_of(self)
        self._steps.now = max(self._steps.now, fitted.iterations or 0)
        if self._last_fit.goes_on(self.model, fitted):
            self.plain = self.model.train_function
            return
        if not self._last_fit.begins(self.model, fitted):
            return
        self._sampled = None
        self._monitored = self._monitored_steps(is_wanted=self._options.catch_nonfinite)
        if self._first_step is None:
            self._first_step = self._steps.now
        self._tracing = Tracing(self._recorder)
        self._numbers = numbers = numbers_of(keras_own(self.model.train_function), fitted.step)
        self._draws = draws = fitted.draws(is_monitored=self._options.catch_nonfinite)
        self._instrumented = step = InstrumentedStep(
            fitted.step if fitted.is_eager else draws.shared(numbers.shared(fitted.step_as_traced)),
            fitted.variables,
            dataclasses.replace(self._options.settings, eager=fitted.is_eager),
            self._tracing.finished,
            fitted.inputs,
            self._tracing.failed,
        )
        self._sampled = fitted.recording(lambda data: step(data), numbers)
        self._measured_again = RecordedAgain(
            step, lambda: lambda last, of: self._again()(Execution(last(of))), for_xla=fitted.is_for_xla
        )
        put(self.model, fitted.as_compiled(numbers, self.protection.ends))
        self.plain = self.model.train_function

    def _is_alone(self) -> bool:
        """Whether no other recorder has this fit. Two would replace each other's function, so the first records."""
        if not isinstance(owner(self.model), GradFlowCallback):
            return True
        self.plain = None  # the function of the model belongs to the other one
        self.protection.stop()
        warn(
            "tb_gradflow: this fit has two GradFlowCallbacks, but only one can record. The second one, for "
            f"{self._options.log_dir!r}, records nothing: remove one of them."
        )
        return False

    def _due(self) -> bool:
        """Whether a step of the next execution should be recorded."""
        since = self._steps.now - (self._first_step or 0)
        is_due, is_last = self._options.cadence.is_due, self._steps.is_last(self._epoch, self.params)
        due = self._postponed or any(
            is_due(since + ahead, self._epoch_begins and ahead == 0, is_last)
            for ahead in range(self._steps.per_execution)
        )
        self._postponed = due and self._may_postpone and self._fitting is not None and self._fitting.must_begin_alone
        if self._postponed:  # only once: the model's own step may create another optimizer
            self._may_postpone = False
        return due and not self._postponed

    def _standing_in(self, ours: Callable[[Execution], None]) -> StandIn:
        return StandIn(self.model, self.plain, ours, whole_data, self)

    def _run_sampled(self, execution: Execution) -> None:
        assert self._sampled is not None and self._fitting is not None
        self._execution = None
        if self._fitting.is_of_batches and not self._fitting.is_eager:
            self._execution = execution
            self._measured_again.begins(self._fitting.state)
        with self._tracing.told():
            _, measured = self._sampled(execution)
        if self._tracing.fault is not None:
            raise self._tracing.fault
        self._measured = measured or self._instrumented.left()

    def _report_fault(self, fault: Exception, cost: str = "") -> None:
        warn(fault_message(self._steps.now, fault, cost))
        if self.protection.is_over:
            with contextlib.suppress(Exception):  # it may be what failed
                self._written()

    def _written(self) -> None:
        """Makes the recorded steps readable; does not measure anything more."""
        if self._recorder is not None:
            self._recorder.flush()

    def _restored(self) -> None:
        """The model trains with its own function."""
        if self.plain is not None and owner(self.model) is self:
            put(self.model, self.plain)

    def _write(self, step: int) -> None:
        assert self._recorder is not None and self._measured is not None
        measured, self._measured = self._measured, None
        values = {name: value.numpy() for name, value in measured.items()}
        execution, self._execution = self._execution, None
        if execution is not None:
            values = self._measured_again.measured(values, last_of, execution) or values
        self._recorder.add_step(step, self._tracing.indices[index_of(values)], values)

    def _monitored_steps(self, *, is_wanted: bool) -> MonitoredSteps:
        return MonitoredSteps(
            is_wanted=is_wanted,
            record=self._write_caught,
            report=self._report_fault,
        )

    def _select_monitor(self) -> NonfiniteMonitor | None:
        assert self._fitting is not None and self._sampled is not None
        step = self._draws.shared(self._numbers.shared(self._fitting.step_as_traced))
        return monitor_of_fit(self._fitting, step, RecordedStep(self._instrumented, self._sampled, self._again))

    def _again(self) -> OwnFunction:
        """A fresh recording function, without XLA, which takes minutes to compile the measurement of a forward pass."""
        assert self._fitting is not None

        def repeated(data: Any) -> Any:
            with self._numbers.repeating():
                return self._instrumented(data)

        return self._fitting.recording(repeated, self._numbers, without_xla=True)

    def _run_monitored(self, execution: Execution) -> None:
        self._monitored.run(execution)

    def _write_caught(self, caught: CaughtStep) -> None:
        assert self._recorder is not None
        self._steps.correct()  # the last execution of an epoch may have been shorter than the others
        index = self._tracing.indices[index_of(caught.values)]
        self._recorder.add_step(self._steps.now - caught.ago, index, caught.values, tell=True)


def _beside_this() -> Sequence[Any] | None:
    """The callbacks of the same `fit`, from the list that calls this one: Keras gives a callback only the model. `None`
    if they are not known."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("tb_gradflow."):
        frame = frame.f_back
    return getattr(frame.f_locals.get("self"), "callbacks", None) if frame is not None else None
