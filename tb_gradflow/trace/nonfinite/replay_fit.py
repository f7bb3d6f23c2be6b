"""Runs steps of `fit` again, which Keras runs in executions of one or several, over an iterator."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from tb_gradflow.trace.fit.keras3 import Fitting, OwnFunction
from tb_gradflow.trace.graph.variables import local
from tb_gradflow.trace.nonfinite.monitor import same
from tb_gradflow.trace.nonfinite.replay import FlaggedStep, Measure
from tb_gradflow.trace.protection.beside import Failed
from tb_gradflow.trace.protection.functions import faults_go_to
from tb_gradflow.trace.protection.training import Execution
from tb_gradflow.trace.step.recent_batches import Batches, dataset_of
from tb_gradflow.trace.step.replicas import Measured
from tb_gradflow.trace.tf_internals.patching import replaced


class FitExecutions:
    """Executions of a Keras training function: see `Executions`.

    Args:
        fitted: The model.
        flagged: Its step.
        recorded: The training function that runs the instrumented step.
    """

    # The batches are in variables, which have room for the steps of a replay window.
    is_full = False

    def __init__(self, fitted: Fitting, flagged: FlaggedStep, recorded: OwnFunction) -> None:
        self.counters: Sequence[Any] = fitted.counters
        self._flags = flagged.flags
        self._failed = flagged.failed
        self._strategy = fitted.strategy
        self._per_execution = fitted.steps_per_execution
        self._for_xla = fitted.is_for_xla
        self._rate = fitted.learning_rate
        self._batches = Batches(flagged.flags.replicas)
        self._calls = _Calls(self._keep)
        self._function = fitted.monitoring(self._keeping(flagged.function), recorded)
        self._results: list[Any] = []
        self._taken: list[list[Any]] = []
        self._spec: Any = None

    def run(self, begins: Callable[[], None], execution: Execution, /, *args: Any, **kwargs: Any) -> Any:
        begins()
        # A function that was traced for a type of batch is not traced for it again.
        is_new, self._spec = execution.element_spec is not self._spec, execution.element_spec
        with self._calls.seen(self._failed) if is_new and self._for_xla else contextlib.nullcontext():
            results = self._function(execution)
        self._results.append(results)
        return results

    def _keep(self, batch: Any) -> None:
        """In a step's graph: its batch, and the learning rate, which callbacks change between steps."""
        rate = () if self._rate is None else local(self._rate).read_value()
        self._batches.keep((batch, rate))

    def _keeping(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """The step, whose batches are kept."""

        def run(batch: Any) -> Any:
            if self._for_xla:
                self._calls.step_is_traced()
            else:
                self._keep(batch)
            return step(batch)

        return run

    @property
    def step_count(self) -> int:
        return len(self._results) * self._per_execution

    def forget(self) -> int:
        self._results.clear()
        return self._batches.forget()

    def repeated(self, first: int, measure: Measure) -> Measured | None:
        self._taken = steps = self._taken or self._batches.taken()
        if len(steps) != self._flags.count:  # traced again without being observed
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
        results, measured = self._run_again(measure, rates[last], iterator)
        # An execution that has gone on has other results.
        if ahead == self._per_execution - 1 and not same(self._results[last], results):
            return None
        return measured

    def _run_again(self, function: Callable[[Execution], Any], rate: Any, iterator: Any) -> Any:
        if self._rate is not None:
            self._rate.assign(rate)
        return function(Execution(iterator))

    def _iterator(self, steps: list[list[Any]]) -> Any:
        """Over these batches, of the type that the training functions were compiled for."""
        dataset = dataset_of((part for step in steps for part in step), _of_one_replica(self._spec))
        if len(steps[0]) > 1:
            return iter(self._strategy.distribute_datasets_from_function(lambda context: dataset))
        return iter(dataset)


class _Calls:
    """Keeps the batch that is passed to a function that XLA compiles: inside such a function nothing can be kept."""

    def __init__(self, keep: Callable[[Any], None]) -> None:
        self._keep = keep
        self._traced = 0
        self._kept = 0
        self._steps: set[int] = set()

    def step_is_traced(self) -> None:
        self._traced += 1

    @contextlib.contextmanager
    def seen(self, failed: Failed) -> Iterator[None]:
        """While the context is open, observes calls that are traced; faults are reported to `failed`."""
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


def _of_one_replica(spec: Any) -> Any:
    """The type of what one replica is given, where `spec` is that of what all are given."""
    return tf.nest.map_structure(lambda each: getattr(each, "_value_specs", (each,))[0], spec)
