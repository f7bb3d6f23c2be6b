"""The Keras callback. The model runs its own compiled function; on recorded steps a form of it that is made from the
same trace.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tb_gradflow.record.report import Diagnosis
from tb_gradflow.record.schema import Trials
from tb_gradflow.trace.capture.collector import Tensors
from tb_gradflow.trace.engine.repeated import NotRepeatable
from tb_gradflow.trace.fit.callback_base import KerasCallback
from tb_gradflow.trace.fit.data_rows import DrawnRows
from tb_gradflow.trace.fit.fitted_steps import EagerFit
from tb_gradflow.trace.fit.flags import FlagsWithoutEffect
from tb_gradflow.trace.fit.keras2 import check_backend, fitting, is_legacy
from tb_gradflow.trace.fit.keras3 import STEP, Fitting, TrainFunction
from tb_gradflow.trace.fit.step_count import StepCount
from tb_gradflow.trace.fit.train_function import StandIn, owner, put
from tb_gradflow.trace.graph.variables import has_weights
from tb_gradflow.trace.log.cadence import UpdateFreq
from tb_gradflow.trace.log.findings import Attempt, Findings, OnFinding, TryFixes
from tb_gradflow.trace.log.options import checked
from tb_gradflow.trace.log.progress import told_if_long
from tb_gradflow.trace.log.recorder import Recorder, Tracing, fault_message, index_of, new_session
from tb_gradflow.trace.observed.kept_step import KeptStep
from tb_gradflow.trace.observed.observed_steps import ObservedSteps
from tb_gradflow.trace.protection.foreign import suppressed
from tb_gradflow.trace.protection.training import Protection, protected_method
from tb_gradflow.trace.protection.warning import warn
from tb_gradflow.trace.step.measurements import Measured
from tb_gradflow.trace.step.workers import is_one_of_several, unsupported, writes_log


class GradFlowCallback(KerasCallback):
    """Records the gradient flow during `fit`, for TensorBoard's tab "Gradient flow".

    On the steps chosen by `update_freq` a second version of the compiled training step runs, made from the same trace.
    It updates the model exactly as the model's own step does, and also leaves the statistics of its gradients. If the
    recorder fails after training has begun, it warns once, and training continues.

    Args:
        log_dir: Any path that `tf.io.gfile` can write. Events go to `<log_dir>/gradflow`.
        update_freq: `"auto"`: the first ten steps, the first three of a function that is compiled later, such as after
            `compile`, of at most five functions, then as often as `overhead` allows, and the last step of a fit that
            is not too short; an int `n`: every `n` steps; `"epoch"`: the first step of each epoch. With
            `steps_per_execution`, the last step of an execution is recorded.
        overhead: With `"auto"`: the share of the training time that recorded steps may add, not counting the time to
            compile them once.
        tensors: `"all"`: the gradient of every tensor between the variables and the loss; `"layers"`: of each layer's
            output; `"variables"`: of variables only. The structure is recorded in all cases.
        catch_nonfinite: Whether to record the first step that has a gradient with NaN or Inf, regardless of
            `update_freq`: the gradients of each step are checked, and that step is run again. Likewise at most three
            steps whose loss or gradient is far above what is usual. Not available for eager steps or several workers.
        expected: Name patterns (fnmatch) of variables that are meant to get no gradient.
        source: Whether to keep the user's file names, line numbers and lines in the log.
        terms: Whether recorded steps also measure the gradient of each term of a loss that is a sum, with one more
            backward pass for each term. Not available with several replicas.
        examples: Whether the log may keep the batch rows in which a step stops being finite: up to eight rows, with 64
            elements each. Without it only the row numbers are kept.
        on_finding: Called with each new finding (`finding.cause`, `finding.severity`, `finding.message`) when it first
            holds. All recorded steps are then diagnosed while the model trains. What it raises is reported, and never
            reaches the training.
        try_fixes: Whether the fixes of the findings are tried when the program ends: each is applied in memory to a
            copy of the step in which it was found, which is then trained for 20 steps; the log holds what came out.
            `"auto"`: if that takes at most the share `overhead` of the training's time.

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
        on_finding: OnFinding | None = None,
        try_fixes: TryFixes = "auto",
    ) -> None:
        super().__init__()
        # A program that imports Keras 2 trains with it, whatever backend Keras 3 has.
        if "tf_keras" not in sys.modules:
            check_backend("GradFlowCallback")
        self._arguments: dict[str, Any] = {
            "log_dir": log_dir,
            "update_freq": update_freq,
            "overhead": overhead,
            "tensors": tensors,
            "catch_nonfinite": catch_nonfinite,
            "expected": expected,
            "source": source,
            "terms": terms,
            "examples": examples,
            "on_finding": on_finding,
            "try_fixes": try_fixes,
        }
        others = frozenset(vars(self)) - {"_arguments"}
        if is_one_of_several() and "tf_keras" not in sys.modules:
            warn(
                "tb_gradflow: `fit` of Keras 3 does not support MultiWorkerMirroredStrategy. Train with `fit` of "
                "tf_keras, or with a custom training loop under `tb_gradflow.watch`."
            )
        self._options = checked(**self._arguments)
        # The part of the training's time that trying fixes may take; None: as the arguments say.
        self.share: float | None = None
        self._began = self._ready = 0.0
        self._recorder: Recorder | None = None
        self.protection = Protection(self._report_fault, self._restored, self._written)
        # The model's own training function; None while nothing is recorded. An attribute: what reads it cannot fail.
        self.plain: TrainFunction | None = None
        self._steps: ObservedSteps | EagerFit | None = None
        self._tracing = Tracing()
        self._fitting: Fitting | None = None
        self._count = StepCount()
        self._drawn = DrawnRows()
        self._flags = FlagsWithoutEffect()
        self._first_step: int | None = None
        self._epoch = 0
        self._epoch_begins = False
        self._has_told = False
        # What a copy gets anew.
        self._own = frozenset({*vars(self), "_own"} - others)

    def __getstate__(self) -> dict[str, Any]:
        """A copy, in this process or in another one, is a new recorder with the same arguments, and keeps what a
        subclass or the user has added. A training in progress is not copied."""
        added = {name: value for name, value in vars(self).items() if name not in self._own and name not in _OF_FIT}
        return {"arguments": {**self._arguments, "log_dir": self._options.log_dir}, "added": added}

    def __setstate__(self, state: dict[str, Any]) -> None:
        GradFlowCallback.__init__(self, **state["arguments"])
        vars(self).update(state["added"])

    @protected_method
    def on_train_begin(self, logs: Any = None) -> None:
        interrupted = owner(self.model)
        if isinstance(interrupted, GradFlowCallback) and interrupted.plain is not None:
            put(self.model, interrupted.plain)
        self.plain = None
        self._prepare()

    @protected_method
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch, self._epoch_begins = epoch, True
        self._count.epoch_begins(self._fitting if self.plain is not None else None)

    @protected_method
    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self.plain is None or self._steps is None or not self._is_alone():
            return
        self._began = time.perf_counter()
        if self._recorder is not None:
            self._recorder.step_begins()
        self.plain = self.model.train_function  # another callback may have compiled the model anew
        self._count.execution_begins(batch)
        self._steps.begins(is_due=self._is_due())
        put(self.model, StandIn(self.model, self.plain, self._steps, self))
        self._epoch_begins = False
        self._ready = time.perf_counter()

    @protected_method
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self.plain is None or self._steps is None:
            return
        done = time.perf_counter()
        if owner(self.model) is self:  # it was not called; another callback may have compiled the model since
            put(self.model, self.plain)
        self._count.execution_ends(batch)
        measured = self._steps.measured()
        if measured is not None:
            self._count.correct()
            self._write(self._count.now - self._steps.ago, measured, tell=self._steps.tells)
        else:
            self._tell_if_unseen()
            if self._recorder is not None:
                self._recorder.flush_if_due()
        now = time.perf_counter()
        own = self._ready - self._began + now - done
        self._options.cadence.meter.took(
            now - self._began,
            recorded=self._steps.has_recorded,
            own=own,
            rented=self._steps.is_rented,
            first=self._steps.is_first,
        )

    @protected_method
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._count.correct()
        self._written()

    @protected_method
    def on_train_end(self, logs: Any = None) -> None:
        self._written()
        self._flags.ends(self.model)
        self.plain = None

    def has_raised(self, error: BaseException) -> None:
        """The model's training function has raised."""
        if isinstance(self._steps, ObservedSteps):
            self._steps.raised(error)
            self._steps.begins(is_due=False)  # nothing of it was measured, and `train_on_batch` may go on
        else:
            self._tracing.raised_later(error)

    @protected_method
    def draws_from(self, iterator: Any) -> None:
        """The model's training function is about to take its batches from that iterator."""
        self._drawn.begins(iterator, self._count.now)

    def goes_on_with(self, model: Any) -> bool:
        """Whether a training with the model's current function is in progress."""
        return self.plain is not None and model.train_function is self.plain

    def settle(self, *, has_ended: bool) -> None:
        """See `Recorder.settle`."""
        if self._recorder is not None:
            self._recorder.settle(has_ended=has_ended)

    @protected_method
    def flush(self) -> None:
        """Everything recorded so far can be read when this returns; `fit` does this at the end of each epoch."""
        self._written()

    def _prepare(self) -> None:
        fitted = fitting(self.model)
        reason = unsupported(fitted.strategy, fitted.is_eager)
        if reason:
            warn(f"tb_gradflow does not record this training: {reason}")
        if reason or not writes_log():
            return
        if self._recorder is None:
            session = new_session(str(self.model.name), keras=fitted.keras, expected=self._options.expected)
            self._recorder = Recorder(self._options.log_dir, session)
            self._recorder.meter = self._options.cadence.meter
            self._recorder.settles_later = self.share is not None  # the program has not asked for it
            options = self._options
            share = options.share if self.share is None else self.share
            self._recorder.findings = Findings(options.on_finding, options.try_fixes, share, self._keep)
            self._recorder.flush_at_end_of(self)
            self._tracing = Tracing(self._recorder)
        if self._fitting is None or not self._fitting.is_of(self.model) or self._steps is None or fitted.is_eager:
            self._steps = self._made(fitted)
        self._fitting = fitted
        self._flags.begins(self.model, is_eager=fitted.is_eager)
        self._count.now = max(self._count.now, fitted.iterations or 0)
        if self._first_step is None:
            self._first_step = self._count.now
        self.plain = self.model.train_function

    def _made(self, fitted: Fitting) -> ObservedSteps | EagerFit:
        settings, on_trace, on_fault = self._options.settings, self._tracing.finished, self.protection.ends
        self._options.cadence.is_eager = fitted.is_eager
        if fitted.is_eager:
            return EagerFit(fitted, settings, on_trace, on_fault)
        return ObservedSteps(
            fitted.variables, settings, fitted.inputs, on_trace, on_fault, told_if_long, fitted.counter
        )

    def _keep(self) -> Attempt:
        """Keeps the step that was recorded last."""
        model = self.model
        if is_legacy(model):
            raise NotRepeatable("it is one of `fit` of tf_keras")
        if isinstance(self._steps, EagerFit):
            return _attempt_of_eager(model, *self._steps.kept())
        assert self._steps is not None
        kept = self._steps.kept(STEP)

        def attempt(step: int, until: float | None, _recorded: Diagnosis | None) -> Trials:
            from tb_gradflow.trace.explain.one_step import explain_batch  # which takes long to load
            from tb_gradflow.trace.explain.trials import trials_of

            with kept.restored():
                [given], _ = kept.given()
                # A step that has not run was given the iterator, as one execution is.
                batch = next(given) if isinstance(given, tf.data.Iterator) else given
                return trials_of(lambda: explain_batch(model, batch), step, until)

        return Attempt(attempt)

    def _is_alone(self) -> bool:
        """Whether no other recorder has this fit. Two would replace each other's function, so the first records."""
        other = owner(self.model)
        if not isinstance(other, GradFlowCallback) or other is self:
            return True
        self.plain = None  # the function of the model belongs to the other one
        self.protection.stop()
        warn(
            "tb_gradflow: this fit has two GradFlowCallbacks, but only one can record. The second one, for "
            f"{self._options.log_dir!r}, records nothing: remove one of them."
        )
        return False

    def _is_due(self) -> bool:
        """Whether a step of the next execution should be recorded."""
        since = self._count.now - (self._first_step or 0)
        is_due, is_last = self._options.cadence.is_due, self._count.is_last(self._epoch, self.params)
        return any(
            is_due(since + ahead, self._epoch_begins and ahead == 0, is_last)
            for ahead in range(self._count.per_execution)
        )

    def _tell_if_unseen(self) -> None:
        """No step can be recorded, because nobody looked on when they were compiled."""
        if self._steps is not None and self._steps.not_recorded and not self._has_told:
            self._has_told = True
            is_frozen = has_weights(self.model) and self.model.weights and not self.model.trainable_weights
            warn(f"tb_gradflow does not record this fit: {_FROZEN if is_frozen else self._steps.not_recorded}")

    def _report_fault(self, fault: Exception) -> None:
        warn(fault_message(self._count.now, fault))
        if self.protection.is_over:
            with suppressed():  # it may be what failed
                self._written()

    def _written(self) -> None:
        """Makes the recorded steps readable; does not measure anything more."""
        if self._recorder is not None:
            self._recorder.flush()

    def _restored(self) -> None:
        """The model trains with its own function."""
        if self.plain is not None and owner(self.model) is self:
            put(self.model, self.plain)

    def _write(self, step: int, measured: Measured, *, tell: bool) -> None:
        assert self._recorder is not None
        measured["data_rows"] = self._drawn.located(measured, step)
        self._recorder.add_step(step, self._tracing.indices[index_of(measured)], measured, tell=tell)


def _attempt_of_eager(model: Any, kept: KeptStep, batch: Any, losses: Sequence[float]) -> Attempt:
    def attempt(step: int, until: float | None, _recorded: Diagnosis | None) -> Trials:
        from tb_gradflow.trace.explain.one_step import explain_batch
        from tb_gradflow.trace.explain.trials import trials_of

        with kept.restored():
            return trials_of(lambda: explain_batch(model, batch), step, until, losses)

    return Attempt(attempt, repeats_python=True)


_OF_FIT = frozenset({"_model", "model", "params", "validation_data"})
"""What Keras sets on a callback for a training, in Keras 3 and 2."""

_FROZEN = (
    "none of its weights is trainable, so its step requests no gradient. What counts is `trainable` when the step is "
    "traced, in the first `fit` or `train_on_batch` after `compile(...)`; in Keras 2, `trainable` at `compile(...)`. "
    "If only another model that contains this one should not train it, set `trainable = True` before this model "
    "trains, and `False` before the other does."
)
