"""Repeats steps of `fit`, which Keras runs in executions of one or several, over an iterator."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function

from tb_gradflow.trace.batches import Batches
from tb_gradflow.trace.caught import same
from tb_gradflow.trace.fitting import Fitting, TrainFunction
from tb_gradflow.trace.replaced import replaced
from tb_gradflow.trace.replay import Replay
from tb_gradflow.trace.replicas import Measured
from tb_gradflow.trace.step import InstrumentedStep
from tb_gradflow.trace.variables import local


class ReplayedFit(Replay):
    """Executions of a Keras training function.

    Args:
        fitted: The model.
        instrumented: See `Replay`.
        recorded: The training function that records.
    """

    def __init__(self, fitted: Fitting, instrumented: InstrumentedStep, recorded: TrainFunction) -> None:
        self._strategy = fitted.strategy
        several = self._strategy.num_replicas_in_sync > 1
        devices = self._strategy.extended.worker_devices if several else [_device_of(instrumented.touched)]
        super().__init__(instrumented, devices, fitted.counters)
        self._per_execution = fitted.steps_per_execution
        self._for_xla = fitted.is_for_xla
        self._rate = fitted.learning_rate
        self._batches = Batches(len(devices))
        self._calls = _Calls(self._batches)
        self._function = fitted.function_of(self._kept_and_guarded(fitted.step))
        self._recorded = recorded
        self._left = instrumented.left
        self._executions: list[tuple[Any, Any]] = []
        self._spec: Any = None

    def run(self, iterator: Any) -> Any:
        self._begin()
        if self._spec is None:
            self._spec = iterator.element_spec
        rate = self._rate_now()
        with self._calls.seen() if self._for_xla else contextlib.nullcontext():
            results = self._function(iterator)
        self._executions.append((rate, results))
        return results

    def _rate_now(self) -> Any:
        if self._rate is None:
            return None
        # A variable's own methods take several times as long, in every step.
        return tf.raw_ops.ReadVariableOp(resource=local(self._rate).handle, dtype=self._rate.dtype)

    def _kept_and_guarded(self, step: Callable[..., Any]) -> Callable[..., Any]:
        guarded = self._guarded(step)

        def run(batch: Any) -> Any:
            if self._for_xla:
                self._calls.step_is_traced()
            else:
                self._batches.keep(batch)
            return guarded(batch)

        return run

    def _kept(self) -> int:
        return len(self._executions) * self._per_execution

    def _forget(self) -> int:
        self._executions.clear()
        return self._batches.forget()

    def _repeated(self, first: int) -> Measured | None:
        steps = self._batches.taken()[: first + 1]
        iterator = self._iterator(steps)
        last, ahead = divmod(first, self._per_execution)
        results: Any = None
        for rate, _ in self._executions[:last]:
            results = self._again(self._function, rate, iterator)
        if last and not same(self._executions[last - 1][1], results):
            return None
        results, measured = self._again(self._recorded, self._executions[last][0], iterator)
        # An execution that has gone on has other results.
        if ahead == self._per_execution - 1 and not same(self._executions[last][1], results):
            return None
        return measured or self._left()

    def _again(self, function: TrainFunction, rate: Any, iterator: Any) -> Any:
        if rate is not None:
            self._rate.assign(rate)
        return function(iterator)

    def _iterator(self, steps: list[list[Any]]) -> Any:
        """Over these batches, of the type that the training functions were compiled for."""
        dataset = tf.data.Dataset.from_generator(
            lambda: (part for step in steps for part in step), output_signature=_of_one_replica(self._spec)
        )
        if len(steps[0]) > 1:
            return iter(self._strategy.distribute_datasets_from_function(lambda context: dataset))
        return iter(dataset)


class _Calls:
    """Keeps the batch that a function which XLA compiles is called with: inside of it nothing could be kept."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        self._traced = 0
        self._kept = 0
        self._steps: set[int] = set()

    def step_is_traced(self) -> None:
        self._traced += 1

    @contextlib.contextmanager
    def seen(self) -> Iterator[None]:
        """While the context is open, calls that are traced are seen."""
        with contextlib.ExitStack() as undo:
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
                self._batches.keep(args[0])
            return results

        return call


def _device_of(variables: Sequence[Any]) -> str:
    """Where a model is: counters may be elsewhere."""
    found: str = next(each.device for each in variables if each.dtype.is_floating)
    return found


def _of_one_replica(spec: Any) -> Any:
    """The type of what one replica is given, where `spec` is that of what all are given."""
    return tf.nest.map_structure(lambda each: getattr(each, "_value_specs", (each,))[0], spec)
