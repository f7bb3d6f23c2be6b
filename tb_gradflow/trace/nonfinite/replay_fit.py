"""Repeats steps of `fit`, which Keras runs in executions of one or several, over an iterator."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from tb_gradflow.trace.fit.keras3 import Fitting, OwnFunction
from tb_gradflow.trace.graph.variables import local
from tb_gradflow.trace.nonfinite.flags import CountedFlags
from tb_gradflow.trace.nonfinite.monitor import Again, same
from tb_gradflow.trace.nonfinite.replay import ReplayMonitor
from tb_gradflow.trace.protection.beside import Failed
from tb_gradflow.trace.protection.functions import faults_go_to
from tb_gradflow.trace.protection.training import Execution
from tb_gradflow.trace.step.instrumented_step import InstrumentedStep
from tb_gradflow.trace.step.recent_batches import Batches, dataset_of
from tb_gradflow.trace.step.replicas import Measured
from tb_gradflow.trace.tf_internals.patching import replaced


class FitReplayMonitor(ReplayMonitor):
    """Executions of a Keras training function.

    Args:
        fitted: The model.
        step: Its step, ready to be traced.
        instrumented: See `ReplayMonitor`.
        recorded: See `ReplayMonitor`; a training function.
        again: See `ReplayMonitor`.
    """

    def __init__(
        self,
        fitted: Fitting,
        step: Callable[..., Any],
        instrumented: InstrumentedStep,
        recorded: OwnFunction,
        again: Again,
    ) -> None:
        self._strategy = fitted.strategy
        several = self._strategy.num_replicas_in_sync > 1
        devices = self._strategy.extended.worker_devices if several else [device_of(instrumented.touched)]
        super().__init__(instrumented, recorded, again, CountedFlags(devices), len(devices), fitted.counters)
        self._per_execution = fitted.steps_per_execution
        self._for_xla = fitted.is_for_xla
        self._rate = fitted.learning_rate
        self._batches = Batches(len(devices))
        self._calls = _Calls(self._keep)
        self._function = fitted.monitoring(self._kept_and_flagged(step), recorded)
        self._results: list[Any] = []
        self._taken: list[list[Any]] = []
        self._spec: Any = None

    def _run(self, execution: Execution, /, *args: Any, **kwargs: Any) -> Any:
        self._begin()
        # A function that was traced for a type of batch is not traced for it again.
        is_new, self._spec = execution.element_spec is not self._spec, execution.element_spec
        with self._calls.seen(self._failed) if is_new and self._for_xla else contextlib.nullcontext():
            results = self._function(execution)
        self._results.append(results)
        return results

    def _keep(self, batch: Any) -> None:
        """In a step's graph: stores its batch, and the learning rate, which callbacks change between steps."""
        rate = () if self._rate is None else local(self._rate).read_value()
        self._batches.keep((batch, rate))

    def _kept_and_flagged(self, step: Callable[..., Any]) -> Callable[..., Any]:
        flagged = self._flagged(step)

        def run(batch: Any) -> Any:
            if self._for_xla:
                self._calls.step_is_traced()
            else:
                self._keep(batch)
            return flagged(batch)

        return run

    def _kept(self) -> int:
        return len(self._results) * self._per_execution

    def _forget(self) -> int:
        self._results.clear()
        return self._batches.forget()

    def _repeated(self, first: int) -> Measured | None:
        self._taken = steps = self._taken or self._batches.taken()
        if len(steps) != self._flags.count:  # it was traced again unnoticed
            return None
        rates = [step[0][1] for step in steps[:: self._per_execution]]
        iterator = self._iterator([[batch for batch, _ in step] for step in steps[: first + 1]])
        last, ahead = divmod(first, self._per_execution)
        results: Any = None
        for rate in rates[:last]:
            results = self._run_again(self._function, rate, iterator)
        if last and not same(self._results[last - 1], results):
            return None
        measured: Measured
        results, measured = self._run_again(self._measured, rates[last], iterator)
        # An execution that continued has different results.
        if ahead == self._per_execution - 1 and not same(self._results[last], results):
            return None
        return measured

    def _run_again(self, function: Callable[[Execution], Any], rate: Any, iterator: Any) -> Any:
        if self._rate is not None:
            self._rate.assign(rate)
        return function(Execution(iterator))

    def _iterator(self, steps: list[list[Any]]) -> Any:
        """An iterator over these batches, of the type for which the training functions were compiled."""
        dataset = dataset_of((part for step in steps for part in step), _of_one_replica(self._spec))
        if len(steps[0]) > 1:
            return iter(self._strategy.distribute_datasets_from_function(lambda context: dataset))
        return iter(dataset)


class _Calls:
    """Stores the batch with which a function that XLA compiles is called: inside of it nothing can be stored."""

    def __init__(self, keep: Callable[[Any], None]) -> None:
        self._keep = keep
        self._traced = 0
        self._kept = 0
        self._steps: set[int] = set()

    def step_is_traced(self) -> None:
        self._traced += 1

    @contextlib.contextmanager
    def seen(self, failed: Failed) -> Iterator[None]:
        """While the context is open, calls that are traced are seen; `failed` is told of faults."""
        with contextlib.ExitStack() as undo, faults_go_to(failed):
            replaced(undo, polymorphic_function.Function, "__call__", self._seen)
            yield

    def _seen(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(function: Any, *args: Any, **kwargs: Any) -> Any:
            if tf.executing_eagerly():
                return original(function, *args, **kwargs)
            traced, kept = self._traced, self._kept
            results = original(function, *args, **kwargs)
            # TensorFlow does not trace a function again for a batch that it knows.
            is_step = self._traced > traced or id(function) in self._steps
            if is_step and self._kept == kept and args:
                self._steps.add(id(function))
                self._kept += 1
                self._keep(args[0])
            return results

        return call


def device_of(variables: Sequence[Any]) -> str:
    """The device of a model: counters may be elsewhere."""
    found: str = next(each.device for each in variables if each.dtype.is_floating)
    return found


def _of_one_replica(spec: Any) -> Any:
    """The type of the batch of one replica, where `spec` is the type of the whole batch."""
    return tf.nest.map_structure(lambda each: getattr(each, "_value_specs", (each,))[0], spec)
