"""The Keras callback. Between recorded steps the model runs its own compiled function, untouched."""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from tb_gradflow.trace.capture.collector import Tensors
from tb_gradflow.trace.fidelity.error_attribution import run_instead
from tb_gradflow.trace.fidelity.python_constants import TracedNumbers
from tb_gradflow.trace.fidelity.warning import warn
from tb_gradflow.trace.fit.batch_step import KeptBatch
from tb_gradflow.trace.fit.callback_base import KerasCallback
from tb_gradflow.trace.fit.keras3 import Fitting, TrainFunction
from tb_gradflow.trace.fit.refit import LastFit
from tb_gradflow.trace.fit.step_count import StepCount
from tb_gradflow.trace.fit.train_function import REPLACED, SET_BY_USER, is_of_the_user, owner, put
from tb_gradflow.trace.fit.which_keras import check_backend, fitting
from tb_gradflow.trace.log.cadence import UpdateFreq
from tb_gradflow.trace.log.options import checked
from tb_gradflow.trace.log.recorder import Identity, Recorder, Tracing, fault_message, index_of
from tb_gradflow.trace.log.workers import in_step_with_others, is_one_of_several, recorder_for, unsupported
from tb_gradflow.trace.nonfinite.monitor import CaughtStep, NonfiniteMonitor, RecordedStep
from tb_gradflow.trace.nonfinite.monitor_choice import monitor_of_fit
from tb_gradflow.trace.nonfinite.monitored_steps import MonitoredSteps, Report
from tb_gradflow.trace.nonfinite.recorded_again import RecordedAgain
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep


class GradFlowCallback(KerasCallback):
    """Records where the gradient goes during `fit`, for the tab "Gradient flow" of TensorBoard.

    On the steps chosen by `update_freq` a second compiled version of the training step runs, which updates the
    model exactly as its own does and also returns the statistics of its gradients. On all others the model's own
    compiled step runs. Whatever fails in here after training has begun is told once in a warning, and training
    goes on.

    Args:
        log_dir: Any path that `tf.io.gfile` can write. Events go to `<log_dir>/gradflow`.
        update_freq: `"auto"`: the first ten steps, then as often as `overhead` allows, and the last one of a fit that
            is not too short; an int: every that many steps; `"epoch"`: the first one of each epoch. With
            `steps_per_execution` it is the last step of the execution.
        overhead: With `"auto"`: the share of the training time that recorded steps may add, apart from what it takes
            once to compile them.
        tensors: `"all"`: the gradient of every tensor between the variables and the loss; `"layers"`: of each
            layer's output; `"variables"`: of variables alone. The structure is recorded with each of them.
        catch_nonfinite: Whether the first step that has a gradient with NaN or Inf is recorded, that very step,
            whatever `update_freq`: it is found by a look at the gradients of each step, and run again. Not for eager
            steps, or several workers.
        expected: Name patterns (fnmatch) of variables that are meant to get no gradient.
        source: Whether the user's file names, line numbers and lines are kept in the log.
        terms: Whether recorded steps also take the gradient of each term of a loss that is a sum, one more backward
            pass for each. Not with several replicas.
        examples: Whether the log may keep the rows of the batch in which a step stops being finite: up to eight, and
            64 numbers of each. Without it their numbers are kept, and none of what is in them.

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
                "tf_keras, or with a loop of your own under `tb_gradflow.watch`."
            )
        self._options = checked(
            log_dir, update_freq, overhead, tensors, catch_nonfinite, expected, source, terms, examples
        )
        self._began = self._ready = 0.0
        self._recorder: Recorder | None = None
        self._broken = False
        self._plain: TrainFunction | None = None
        self._sampled: TrainFunction | None = None
        self._monitored = self._monitored_steps(is_wanted=False)
        self._tracing = Tracing()
        self._fitting: Fitting | None = None
        self._steps = StepCount()
        self._last_fit = LastFit()
        self._first_step: int | None = None
        self._epoch = 0
        self._epoch_begins = self._postponed = self._may_postpone = False
        self._measured: dict[str, Any] | None = None
        self._batch: KeptBatch | None = None

    def on_train_begin(self, logs: Any = None) -> None:
        interrupted = owner(self.model)
        if isinstance(interrupted, GradFlowCallback) and interrupted._plain is not None:
            put(self.model, interrupted._plain)
        self._plain = None
        self._may_postpone = True
        # Keras tells a callback of the model, and not of the other callbacks, whose list calls this.
        caller = sys._getframe(1).f_locals.get("self")
        self._safely(lambda: self._prepare(getattr(caller, "callbacks", None)))

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch, self._epoch_begins = epoch, True
        self._safely(lambda: self._steps.epoch_begins(self._fitting if self._plain is not None else None))

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self._plain is None or self._broken:
            return
        self._began = time.perf_counter()
        if self.model.train_function is not self._plain and not isinstance(owner(self.model), GradFlowCallback):
            self._plain = None
            warn(REPLACED)
            return
        self._steps.execution_begins(batch)
        self._measured = None
        if self._due():
            self._safely(self._check_alone)
            self._safely(self._monitored.settle)
            if not self._broken:
                put(self.model, self._run_sampled)
        elif self._monitored.is_running:
            put(self.model, self._run_monitored)
        self._epoch_begins = False
        self._ready = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._plain is None:
            return
        done = time.perf_counter()
        put(self.model, self._plain)
        self._steps.execution_ends(batch)
        recorded = self._measured is not None
        if recorded:
            self._safely(self._steps.correct)
            self._safely(lambda: self._write(self._steps.now - 1))
            self._safely(lambda: self._monitored.start(self._select_monitor))
        else:
            self._safely(self._monitored.step_ended)
        now = time.perf_counter()
        own = self._ready - self._began + now - done
        self._options.cadence.meter.took(now - self._began, recorded=recorded, own=own)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._safely(self._steps.correct)
        self.flush()

    def on_train_end(self, logs: Any = None) -> None:
        self.flush()
        if self._plain is not None and (fitted := self._fitting) is not None:
            self._safely(lambda: self._last_fit.ends(self.model, fitted))
        self._plain = None

    @property
    def plain(self) -> TrainFunction | None:
        """The model's own training function; null while none is recorded."""
        return self._plain

    def goes_on_with(self, model: Any) -> bool:
        """Whether this is in the middle of a training with the function that the model has now."""
        return self._plain is not None and model.train_function is self._plain

    def flush(self) -> None:
        """Everything recorded so far can be read when this returns; `fit` does this at the end of each epoch."""
        self._safely(self._monitored.settle)
        if self._recorder is not None:
            self._safely(self._recorder.flush)

    def _prepare(self, beside: Sequence[Any] | None) -> None:
        fitted = fitting(self.model, beside)
        reason = SET_BY_USER if is_of_the_user(self.model) else unsupported(fitted.strategy, fitted.is_eager)
        if reason:
            warn(f"tb_gradflow records nothing of this training: {reason}")
            return
        self._fitting = fitted
        fitted.build()
        if self._recorder is None:
            self._options = in_step_with_others(self._options)
            identity = Identity(str(self.model.name), fitted.keras, self._options.expected)
            self._recorder = recorder_for(self._options.log_dir, identity)
            self._recorder.meter = self._options.cadence.meter
        self._steps.now = max(self._steps.now, fitted.iterations or 0)
        if self._last_fit.goes_on(self.model, fitted):
            self._plain = self.model.train_function
            return
        if not self._last_fit.begins(self.model, fitted):
            return
        self._sampled = None
        self._monitored = self._monitored_steps(is_wanted=self._options.catch_nonfinite)
        if self._first_step is None:
            self._first_step = self._steps.now
        self._tracing = Tracing(self._recorder)
        self._numbers = numbers = TracedNumbers(fitted.step)
        self._draws = draws = fitted.draws(is_monitored=self._options.catch_nonfinite)
        self._instrumented = step = InstrumentedStep(
            fitted.step if fitted.is_eager else draws.shared(numbers.leading(fitted.step_as_traced)),
            fitted.variables,
            dataclasses.replace(self._options.settings, eager=fitted.is_eager),
            self._tracing.finished,
            fitted.inputs,
            self._tracing.failed,
        )
        self._sampled = fitted.recording(lambda data: step(data), numbers)
        self._measured_again = RecordedAgain(
            step, lambda: lambda batch: self._again()(batch()), for_xla=fitted.is_for_xla
        )
        put(self.model, fitted.as_compiled(numbers))
        self._plain = self.model.train_function

    def _check_alone(self) -> None:
        """Two recorders would take the model's function from each other: the first one of the list keeps it."""
        if isinstance(owner(self.model), GradFlowCallback):
            self._broken = True
            warn(
                "tb_gradflow: two GradFlowCallbacks are in the same fit, and one of them can record. The second one, "
                f"for {self._options.log_dir!r}, records nothing: leave one of them out."
            )

    def _due(self) -> bool:
        """Whether one of the steps that the coming execution runs is to be recorded."""
        since = self._steps.now - (self._first_step or 0)
        is_due, is_last = self._options.cadence.is_due, self._steps.is_last(self._epoch, self.params)
        due = self._postponed or any(
            is_due(since + ahead, self._epoch_begins and ahead == 0, is_last)
            for ahead in range(self._steps.per_execution)
        )
        self._postponed = due and self._may_postpone and self._fitting is not None and self._fitting.must_begin_alone
        if self._postponed:  # once: what its own step builds may be another optimizer
            self._may_postpone = False
        return due and not self._postponed

    def _run_sampled(self, iterator: Any) -> Any:
        assert self._plain is not None and self._sampled is not None
        assert self._fitting is not None
        put(self.model, self._plain)
        self._batch = KeptBatch(iterator) if self._fitting.is_of_batches and not self._fitting.is_eager else None
        if self._batch is not None:
            self._measured_again.begins(self._fitting.state)
        try:
            with self._tracing.told():
                logs, measured = self._sampled(iterator if self._batch is None else self._batch)
        except Exception as error:
            return run_instead(self._plain, iterator, error, self._stops)
        if self._tracing.fault is None:
            self._measured = measured or self._instrumented.left()
        else:
            self._stops(self._tracing.fault)
        return logs

    def _stops(self, fault: Exception, cost: str = "") -> None:
        self._broken = True
        self._report_fault(fault, cost)

    def _report_fault(self, fault: Exception, cost: str = "") -> None:
        warn(fault_message(self._steps.now, fault, cost))

    def _write(self, step: int) -> None:
        assert self._recorder is not None and self._measured is not None
        measured, self._measured = self._measured, None
        values = {name: value.numpy() for name, value in measured.items()}
        batch, self._batch = self._batch, None
        if batch is not None:
            values = self._measured_again.measured(values, batch.again) or values
        self._recorder.add_step(step, self._tracing.indices[index_of(values)], values)

    def _monitored_steps(self, *, is_wanted: bool) -> MonitoredSteps:
        return MonitoredSteps(
            is_wanted=is_wanted,
            record=lambda caught: self._safely(lambda: self._write_caught(caught)),
            report=self._report_fault,
        )

    def _select_monitor(self) -> NonfiniteMonitor | None:
        assert self._fitting is not None and self._sampled is not None
        step = self._draws.shared(self._numbers.following(self._fitting.step_as_traced))
        return monitor_of_fit(self._fitting, step, RecordedStep(self._instrumented, self._sampled, self._again))

    def _again(self) -> TrainFunction:
        """The function that records, to be traced anew. To compile what measures a forward pass takes XLA minutes."""
        assert self._fitting is not None
        return self._fitting.recording(lambda data: self._instrumented(data), self._numbers, without_xla=True)

    def _run_monitored(self, iterator: Any) -> Any:
        plain = self._plain
        assert plain is not None
        put(self.model, plain)

        def instead(error: Exception, report: Report) -> Any:
            return run_instead(plain, iterator, error, report)

        return self._monitored.run(instead, iterator)

    def _write_caught(self, caught: CaughtStep) -> None:
        assert self._recorder is not None
        self._steps.correct()  # the last execution of an epoch may have been shorter than the others
        index = self._tracing.indices[index_of(caught.values)]
        self._recorder.add_step(self._steps.now - caught.ago, index, caught.values, tell=True)

    def _safely(self, action: Callable[[], None]) -> None:
        if self._broken:
            return
        try:
            action()
        except Exception as error:  # a fault of the recorder must never reach the training
            self._broken = True
            warn(f"tb_gradflow stops recording; training goes on. Please report this: {type(error).__name__}: {error}")
