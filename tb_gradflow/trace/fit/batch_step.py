"""Steps of `fit` that are called with their batches, which an `Execution` draws: where one fails, it still has them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.protection.training import Execution
from tb_gradflow.trace.step.recent_batches import dataset_of, without_optionals
from tb_gradflow.trace.tf_internals.variable_creation import UnliftableError, first_trace


def last_of(execution: Execution) -> Any:
    """An iterator over the last batch of an execution alone."""
    return iter(dataset_of([without_optionals(execution.batches[-1])], without_optionals(execution.element_spec)))


def whole_data(execution: Execution) -> Any:
    """An iterator over the batches that were drawn for an execution, and then over the rest."""

    def batches() -> Iterator[Any]:
        yield from list(execution.batches)
        while True:
            try:
                yield execution.iterator.get_next()
            except (StopIteration, tf.errors.OutOfRangeError):
                return

    return iter(dataset_of(batches(), execution.element_spec))


class StepOfBatch:
    """One step on the batches of one iterator after the other, without the function that Keras compiles around it.

    Keras draws a batch inside that function and packs its results, which takes a tenth of a short step. The
    computation of the step itself is compiled in the same way.

    Args:
        function: A `tf.function` of a batch.
        is_paired: See `Execution.call`.
        whole: A training function of the same model. Where there are no more batches, it still does what a step does
            that needs none, such as to count. Null for one that runs `function`; it must not order its updates after
            what needs the batch.
    """

    def __init__(
        self, function: Any, whole: Callable[[Execution], Any] | None = None, *, is_paired: bool = False
    ) -> None:
        self._function = function
        self._is_paired = is_paired
        self._whole = _drawing(function) if whole is None else whole
        self._concrete: Any = None
        self._is_first_trace = False
        self.spec: Any = None

    def drawn(self, execution: Execution) -> Any:
        """The next batch. Raises what the iterator raises at its end or for an error in it."""
        spec = execution.element_spec
        if spec is not self.spec or self._is_first_trace:
            # Of the type that the iterator has, and not of the shape that this batch happens to have.
            self._trace(without_optionals(spec))
            self.spec = spec
        try:
            return without_optionals(execution.get_next())
        except tf.errors.OutOfRangeError:
            self._whole(execution)
            raise

    def _trace(self, spec: Any) -> None:
        self._is_first_trace = False
        try:
            self._concrete = self._function.get_concrete_function(spec)
        except UnliftableError:
            self._concrete = first_trace(self._function)
            self._is_first_trace = True
            if self._concrete is None:
                raise

    def __call__(self, batch: Any, execution: Execution | None = None) -> Any:
        """Runs the step on a batch that was drawn, for an execution or once more."""
        if execution is None:
            return self._concrete(batch)
        return execution.call(self._concrete, batch, is_paired=self._is_paired)

    def on_next(self, execution: Execution) -> Any:
        """Does what a training function does."""
        return self(self.drawn(execution), execution)


class StepsOfBatches:
    """Whole executions of a training function, on batches that are drawn for it.

    Args:
        function: Built by Keras. It draws as many batches as `count` answers before each run.
        around: Returns the context to run it in.
        count: How many steps the next execution has; Keras 2 shortens the last one of an epoch.
        most: After how many executions it draws its batches itself; null if it never does.
        is_paired: See `Execution.call`.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        around: Callable[[], contextlib.AbstractContextManager[None]],
        count: Callable[[], int],
        most: int | None,
        *,
        is_paired: bool,
    ) -> None:
        self._function = function
        self._around = around
        self._is_paired = is_paired
        self._count = count
        self._left = most

    def __call__(self, execution: Execution) -> Any:
        """Does what the training function does."""
        if self._left == 0:
            return self._call(execution, execution.iterator)
        with contextlib.suppress(tf.errors.OutOfRangeError):
            for _ in range(self._count()):
                execution.get_next()
        data = iter(dataset_of(execution.batches, execution.element_spec))
        results = self._call(execution, data)
        if self._left is not None:
            self._left -= 1
        return results

    def _call(self, execution: Execution, data: Any) -> Any:
        with self._around():  # which is the recorder's, so that a fault in it is no error of the step
            return execution.call(self._function, data, is_paired=self._is_paired)


def _drawing(function: Any) -> Callable[[Execution], Any]:
    """The training function that Keras would make of a step."""

    def on_next(iterator: Any) -> Any:
        return function(without_optionals(iterator.get_next()))

    drawing = tf.function(tf.autograph.experimental.do_not_convert(on_next), reduce_retracing=True)
    return lambda execution: execution.call(drawing, execution.iterator, is_paired=True)
