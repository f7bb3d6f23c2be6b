"""Recording of a custom training step: `tb_gradflow.watch`, instead of `tf.function`."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import time
import types
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from tb_gradflow.record.report import Diagnosis
from tb_gradflow.record.schema import Trace, Trials
from tb_gradflow.trace.capture.collector import Tensors
from tb_gradflow.trace.eager.compilability import HINT, needs_numbers
from tb_gradflow.trace.engine.repeated import NotRepeatable
from tb_gradflow.trace.engine.tracing import Onlooker, onlooking
from tb_gradflow.trace.graph.build_trace import with_requested
from tb_gradflow.trace.graph.variables import Variables, is_trainable
from tb_gradflow.trace.log.cadence import UpdateFreq
from tb_gradflow.trace.log.findings import Attempt, OnFinding, TryFixes
from tb_gradflow.trace.log.options import checked
from tb_gradflow.trace.log.progress import told_if_long
from tb_gradflow.trace.log.recorder import Tracing
from tb_gradflow.trace.log.watched_run import WatchedRun
from tb_gradflow.trace.observed.observed_steps import ObservedSteps
from tb_gradflow.trace.protection.attention import left_alone
from tb_gradflow.trace.protection.training import Protection, protected_method
from tb_gradflow.trace.protection.warning import warn
from tb_gradflow.trace.step.eager_steps import EagerSteps
from tb_gradflow.trace.step.named_inputs import arguments_of


def watch(
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
) -> Callable[[Callable[..., Any]], Watched]:
    """Records the gradients of a training step, for TensorBoard's tab "Gradient flow".

        @tb_gradflow.watch("logs/run1")
        def train_step(x, y): ...

    Use it instead of `@tf.function`, or on top of one, whose options it keeps. Each call of the function is a step. On
    the steps chosen by `update_freq` a second version of the compiled step runs, made from the same trace, which does
    the same and also leaves the statistics of its gradients. The arguments are those of `GradFlowCallback`; `"epoch"`
    records only the first call, because a function has no epochs.

    Raises:
        SetupError: an argument is wrong, or `log_dir` cannot be written.
    """
    options = checked(
        log_dir,
        update_freq,
        overhead,
        tensors,
        catch_nonfinite,
        expected,
        source,
        terms,
        examples,
        on_finding,
        try_fixes,
    )
    return lambda step: Watched(_compiled(step), WatchedRun(options, compiles=not _is_compiled(step)))


class Watched:
    """A compiled training step, some of whose calls are recorded."""

    def __init__(
        self, plain: Any, run: WatchedRun, onlooker: Callable[[Onlooker], Onlooker] = lambda steps: steps
    ) -> None:
        """`onlooker` returns what looks on in the place of the steps."""
        self._plain = plain
        self._onlooker = onlooker
        self._run = run
        self._began = 0.0
        self._has_told = False
        self._steps: ObservedSteps | EagerSteps | None = None
        self._tracing: Tracing | None = None
        self._of_instances: weakref.WeakKeyDictionary[Any, Watched | Any] = weakref.WeakKeyDictionary()
        functools.update_wrapper(self, plain.python_function)
        self.protection: Protection = run.protection  # of everything that the recorder does

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """The step as a method of `instance`."""
        if instance is None:
            return self
        if instance not in self._of_instances:
            watched = self.protection.attempt(self._bound_to, instance)
            self._of_instances[instance] = watched or NotRecorded(self._plain.__get__(instance, owner))
        return self._of_instances[instance]

    def _bound_to(self, instance: Any) -> Watched:
        bound = self._plain._clone(python_function=types.MethodType(self._plain.python_function, instance))
        return Watched(bound, self._run, self._onlooker)

    def __getattr__(self, name: str) -> Any:
        # Other attributes of a `tf.function`: `get_concrete_function`, `pretty_printed_concrete_signatures`, …
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._plain, name)

    def discard(self) -> None:
        """Stops recording, and drops what was not written yet."""
        self._run.discard()

    @protected_method
    def flush(self) -> None:
        """Makes everything recorded so far readable; at the end of the program this happens automatically."""
        self._run.flush()

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        plain = functools.partial(self._plain, *args, **kwargs)
        with left_alone():
            # Inside another compiled function it is a part of that function's step.
            if not tf.executing_eagerly():
                return plain()
            return self.protection.accompany(
                plain,
                begins=lambda: self._begins(args, kwargs),
                looking_on=self._looking_on,
                ended=self._ended,
                raised=self._raised,
            )

    def _begins(self, args: Any, kwargs: Any) -> None:
        self._began = time.perf_counter()
        self._run.begins()
        eagerly = tf.config.functions_run_eagerly()
        if self._steps is None or isinstance(self._steps, EagerSteps) != eagerly:
            self._steps = self._made(eagerly=eagerly)
        self._steps.begins(is_due=self._run.is_due(), args=args, kwargs=kwargs)

    def _looking_on(self) -> contextlib.AbstractContextManager[Any]:
        if isinstance(self._steps, ObservedSteps) and not self.protection.is_over:
            # Of the functions of a whole program, most request no gradient: only those that it traces now are seen.
            onlooker = self._onlooker(self._steps)
            return onlooking(onlooker) if self._run.is_on_demand else self._steps.looking_on(onlooker)
        return contextlib.nullcontext()

    def _ended(self) -> None:
        assert self._steps is not None
        measured = self._steps.measured()
        if measured is not None and self._tracing is not None:
            self._run.write(measured, self._tracing, tell=self._steps.tells)
        if self._steps.not_recorded and not self._has_told:
            self._has_told = True
            warn(f"tb_gradflow does not record {name_of(self._plain.python_function)}: {self._steps.not_recorded}")
        self._run.completed(
            time.perf_counter() - self._began,
            recorded=self._steps.has_recorded,
            rented=self._steps.is_rented,
            first=self._steps.is_first,
        )

    def _raised(self, error: BaseException) -> None:
        """The user's step has raised."""
        if self._steps is not None:
            self._steps.raised(error)
        if self._run.compiles and isinstance(error, Exception) and needs_numbers(error):
            warn(HINT)

    def _made(self, *, eagerly: bool) -> ObservedSteps | EagerSteps:
        self._tracing = None
        settings = self._run.options.settings
        inputs = arguments_of(self._plain.python_function)
        self._run.options.cadence.is_eager = eagerly
        if eagerly:
            return EagerSteps(settings, inputs, self._on_trace, self.protection.ends)
        return ObservedSteps(
            _variables_met,
            settings,
            inputs,
            self._on_trace,
            self.protection.ends,
            told_if_long,
            step="" if self._run.is_on_demand else name_of(self._plain.python_function),
        )

    def _on_trace(self, trace: Trace, error: BaseException | None) -> None:
        trace = with_requested(trace)
        if self._tracing is None:
            self._tracing = Tracing(self._run.recorder(name_of(self._plain.python_function), self._keep))
        self._tracing.finished(trace, error)

    def _keep(self) -> Attempt:
        """Keeps the step that was recorded last."""
        if not isinstance(self._steps, ObservedSteps):
            raise NotRepeatable("it runs eagerly")
        kept, step = self._steps.kept(), _with_owner(self._plain.python_function)

        def attempt(number: int, until: float | None, _recorded: Diagnosis | None) -> Trials:
            from tb_gradflow.trace.explain.one_step import explain_step  # which takes long to load
            from tb_gradflow.trace.explain.trials import trials_of

            with kept.restored():
                args, kwargs = kept.given()
                return trials_of(lambda: explain_step(step, args, kwargs, name_of(step)), number, until)

        return Attempt(attempt)


class NotRecorded:
    """A user's step after the end of the recording, with the methods of a watched one."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._plain(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._plain, name)

    def discard(self) -> None:
        """Nothing was recorded."""

    def flush(self) -> None:
        """Nothing was recorded."""


def name_of(function: Any) -> str:
    """The name of a function that is compiled as a step; of an object that can be called, the name of its class."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _is_compiled(step: Callable[..., Any]) -> bool:
    return isinstance(step, polymorphic_function.Function)


def _compiled(step: Callable[..., Any]) -> Any:
    return step if _is_compiled(step) else tf.function(step)


def _with_owner(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step that keeps the object whose method it is: that of a `tf.function` does not."""
    inner = inspect.unwrap(step)
    owner = getattr(getattr(inner, "__self__", None), "target", None)
    return step if owner is None else types.MethodType(inner.__func__, owner)


def _variables_met() -> Variables:
    return Variables(meets=is_trainable)
