"""Recording of a custom training step: `tb_gradflow.watch`, instead of `tf.function`."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import os
import time
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from tb_gradflow.record.schema import Trace
from tb_gradflow.trace.capture.collector import Tensors
from tb_gradflow.trace.eager.compilability import HINT, needs_numbers
from tb_gradflow.trace.fidelity.error_attribution import traced
from tb_gradflow.trace.fidelity.python_constants import TracedNumbers
from tb_gradflow.trace.fidelity.rng_sharing import RandomDraws
from tb_gradflow.trace.fidelity.warning import warn
from tb_gradflow.trace.graph.variables import GivenTensor, MadeTensor, Variables
from tb_gradflow.trace.log.cadence import UpdateFreq
from tb_gradflow.trace.log.options import checked
from tb_gradflow.trace.log.recorder import Tracing
from tb_gradflow.trace.log.workers import is_one_of_several, must_begin_alone
from tb_gradflow.trace.nonfinite.monitor import CaughtStep, NonfiniteMonitor, RecordedStep
from tb_gradflow.trace.nonfinite.monitor_choice import UsersCompilation, monitor_of_calls
from tb_gradflow.trace.nonfinite.monitored_steps import MonitoredSteps
from tb_gradflow.trace.nonfinite.recorded_again import RecordedAgain
from tb_gradflow.trace.protection.functions import faults_go_to
from tb_gradflow.trace.protection.training import Execution, Protection, protected_method, protected_step
from tb_gradflow.trace.signature_cache import AlikeCalls
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep
from tb_gradflow.trace.step.replica_variables import variables_of
from tb_gradflow.trace.tf_internals.variable_creation import UnliftableError, first_trace
from tb_gradflow.trace.watched_run import WatchedRun


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
) -> Callable[[Callable[..., Any]], Watched]:
    """Records the gradients of a training step, for TensorBoard's tab "Gradient flow".

        @tb_gradflow.watch("logs/run1")
        def train_step(x, y): ...

    Use it instead of `@tf.function`, or on top of one, whose options it keeps. Each call of the function is a step. On
    the steps chosen by `update_freq` a second compiled version runs, which does the same and also returns the
    statistics of its gradients. The arguments are those of `GradFlowCallback`; `"epoch"` records only the first call,
    because a function has no epochs.

    Raises:
        SetupError: an argument is wrong, or `log_dir` cannot be written.
    """
    options = checked(log_dir, update_freq, overhead, tensors, catch_nonfinite, expected, source, terms, examples)
    return lambda step: Watched(_compiled(step), WatchedRun(options, compiles=not _is_compiled(step)))


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


class Watched:
    """A compiled training step, some of whose calls are recorded."""

    def __init__(self, plain: Any, run: WatchedRun) -> None:
        self._plain = plain
        self._run = run
        self._sampled: Any = None
        catches = run.options.catch_nonfinite
        self._monitored = MonitoredSteps(is_wanted=catches, record=self._record_caught, report=run.report_fault)
        self._numbers = TracedNumbers(plain.python_function)
        is_new = not plain.experimental_get_tracing_count()
        is_shared = is_new and catches and not plain._jit_compile and not is_one_of_several()
        self._draws = RandomDraws(is_shared=is_shared, relaxes=plain._reduce_retracing)
        self._variables: Sequence[Variables] = [Variables()]
        self._eagerly = self._postponed = False
        self._tracing: Tracing | None = None
        self._of_instances: weakref.WeakKeyDictionary[Any, Watched | NotRecorded] = weakref.WeakKeyDictionary()
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
        return Watched(bound, self._run)

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
        self._monitored.settle()
        self._run.flush()

    __call__ = protected_step(lambda watched: watched._plain, lambda watched: watched._step)

    def _step(self, execution: Execution, /, *args: Any, **kwargs: Any) -> None:
        run = self._run
        began = time.perf_counter()
        due = run.is_due() or self._postponed
        self._postponed = due and must_begin_alone(self._plain)
        due = due and not self._postponed
        if due:
            self._monitored.settle()
            self._recorded(execution, args, kwargs)
        elif self._monitored.is_running:
            self._monitored.run(execution, *args, **kwargs)
        else:
            execution.call_own(functools.partial(self._plain, *args, **kwargs))
        run.completed(time.perf_counter() - began, recorded=due)
        if not due:
            self._monitored.step_ended()

    def _recorded(self, execution: Execution, args: Any, kwargs: Any) -> None:
        try:
            sampled = self._prepared(args, kwargs)
            assert self._tracing is not None
            listed = [each.variable for variables in self._variables for each in variables]
            if len(self._variables) == 1:
                self._measured_again.begins([each for each in listed if isinstance(each, tf.Variable)])
            with self._tracing.told():
                _, measured = execution.call(functools.partial(sampled, *args, **kwargs), is_paired=True)
        except UnliftableError:
            trace = first_trace(self._plain)
            if trace is None:
                raise
            self._postponed = True
            execution.call(functools.partial(trace, *args, **kwargs), is_paired=False)
            return
        if self._tracing.fault is not None:
            raise self._tracing.fault
        values = {name: value.numpy() for name, value in measured.items()}
        self._run.write(self._measured_again.measured(values, *args, **kwargs) or values, self._tracing)
        self._monitored.start(self._select_monitor)

    def _own_error(self, error: Exception) -> None:
        """The user's step has raised."""
        if self._run.compiles and needs_numbers(error):
            warn(HINT)

    def _record_caught(self, caught: CaughtStep) -> None:
        assert self._tracing is not None
        self._run.write_caught(caught, self._tracing)

    def _select_monitor(self) -> NonfiniteMonitor | None:
        if self._eagerly or is_one_of_several():
            return None
        step = self._draws.shared(self._numbers.shared(_converted(self._plain)))
        devices, instrumented = [_device_of(replica) for replica in self._variables], self._instrumented_step
        recorded = RecordedStep(instrumented, self._sampled, lambda: self._recording_again(instrumented))
        users = UsersCompilation(self._compiled_alike, devices, for_xla=bool(self._plain._jit_compile))
        return monitor_of_calls(step, recorded, users)

    def _compiled_alike(self, step: Callable[..., Any], is_paired: bool) -> Any:
        return AlikeCalls(self._compiled_as_plain(step), is_paired=is_paired)

    def _compiled_as_plain(self, step: Callable[..., Any]) -> Any:
        # The optimizer sorts the terms of a sum by name, and an argument is named after its parameter.
        def alike(*args: Any, **kwargs: Any) -> Any:
            return step(*args, **kwargs)

        with contextlib.suppress(TypeError, ValueError):  # a callable without a signature
            vars(alike)["__signature__"] = inspect.signature(self._plain.python_function)
        return self._plain._clone(python_function=tf.autograph.experimental.do_not_convert(alike))

    def _prepared(self, args: Any, kwargs: Any) -> Any:
        eagerly = tf.config.functions_run_eagerly()
        if eagerly:
            # The variables that the last step read: those of this step cannot be known in advance. Its tensors were its
            # own.
            listed = [owned for variables in self._variables for owned in variables]
            known = [owned for owned in listed if not isinstance(owned.variable, MadeTensor)]
            self._variables = [Variables(lambda: known)]
        else:
            # Traced here at the latest, which its own next call needs anyway.
            faults: list[Exception] = []
            with faults_go_to(faults.append), self._numbers.led(), self._as_before_an_error():
                plain = traced(self._plain, self._instrumented, args, kwargs)
            if faults:
                raise faults[0]
            self._variables = variables_of(plain)
        if self._sampled is None or eagerly != self._eagerly:
            self._eagerly = eagerly
            self._sampled = self._instrumented()
        return self._sampled

    @contextlib.contextmanager
    def _as_before_an_error(self) -> Iterator[None]:
        """The user's error is reported by another instrumented step; that of the earlier steps goes on."""
        names = ("_tracing", "_instrumented_step", "_measured_again") if self._sampled is not None else ()
        before = {name: vars(self)[name] for name in names}
        try:
            yield
        except Exception:
            vars(self).update(before)
            raise

    def _instrumented(self) -> Any:
        self._tracing = Tracing(self._run.recorder(name_of(self._plain.python_function)))
        self._instrumented_step = step = InstrumentedStep(
            self._plain.python_function
            if self._eagerly
            else self._draws.shared(self._numbers.following(_converted(self._plain))),
            lambda: self._variables,
            dataclasses.replace(self._run.options.settings, eager=self._eagerly),
            self._on_trace,
            on_fault=self._tracing.failed,
        )
        self._measured_again = RecordedAgain(
            step, lambda: self._recording_again(step), for_xla=bool(self._plain._jit_compile)
        )
        return self._compiled_recording(step)

    def _compiled_recording(self, step: InstrumentedStep) -> Any:
        # Not a lambda: TensorFlow leaves the user's lines out of an error in a function named `<lambda>`.
        def recorded(*args: Any, **kwargs: Any) -> Any:
            return step(*args, **kwargs)

        return self._compiled_as_plain(recorded)

    def _recording_again(self, step: InstrumentedStep) -> Any:
        """Compiling the forward measurements takes XLA minutes, so TensorFlow runs this step."""
        recording = self._compiled_recording(step)
        recording._jit_compile = False
        return recording

    def _on_trace(self, trace: Trace, error: BaseException | None) -> None:
        asked = {each.variable for each in trace.variable_gradients if each.outcome != "not_asked"}
        listed = tuple(
            dataclasses.replace(variable, tracked=number in asked) for number, variable in enumerate(trace.variables)
        )
        assert self._tracing is not None
        self._tracing.finished(dataclasses.replace(trace, variables=listed), error)


def name_of(function: Any) -> str:
    """The name of a function that is compiled as a step; of an object that can be called, the name of its class."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _is_compiled(step: Callable[..., Any]) -> bool:
    return isinstance(step, polymorphic_function.Function)


def _compiled(step: Callable[..., Any]) -> Any:
    return step if _is_compiled(step) else tf.function(step)


def _converted(function: Any) -> Callable[..., Any]:
    """The Python function of a `tf.function`, converted with AutoGraph if the `tf.function` does so."""
    if not function._autograph:
        plain: Callable[..., Any] = function.python_function
        return plain
    enabled = ag_ctx.ControlStatusCtx(ag_ctx.Status.ENABLED)
    converted: Callable[..., Any] = tf.__internal__.autograph.tf_convert(function.python_function, enabled)
    return converted


def _device_of(variables: Variables) -> str:
    """The device of a replica's variables; TensorFlow's choice if it has only tensors."""
    devices = (each.variable.device for each in variables if not isinstance(each.variable, GivenTensor))
    found: str = next(devices, "")
    return found
