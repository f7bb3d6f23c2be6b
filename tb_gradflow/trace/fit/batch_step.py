"""Steps of `fit` that are called with their batches: if one fails, its batch is still available."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.fidelity.error_attribution import Refused, StepFailed
from tb_gradflow.trace.step.recent_batches import dataset_of, without_optionals
from tb_gradflow.trace.tf_internals.variable_creation import UnliftableError, first_trace


class KeptBatch:
    """An iterator that keeps its last batch.

    Attributes:
        iterator: The underlying iterator.
        batch: That batch; None while there is none.
    """

    def __init__(self, iterator: Any) -> None:
        self.iterator = iterator
        self.batch: Any = None

    @property
    def element_spec(self) -> Any:
        """The type of a batch."""
        return self.iterator.element_spec

    def get_next(self) -> Any:
        """The next batch."""
        self.batch = self.iterator.get_next()
        return self.batch

    def again(self) -> Any:
        """An iterator over only that batch."""
        return iter(dataset_of([without_optionals(self.batch)], without_optionals(self.element_spec)))


def drawn_from(iterator: Any) -> Any:
    """The `tf.data` iterator inside of an iterator that keeps its batch."""
    return iterator.iterator if isinstance(iterator, KeptBatch) else iterator


class StepOfBatch:
    """One step on the batches of one iterator after the other, without the function that Keras compiles around it.

    Keras draws a batch inside of that function and packs its results, which takes a tenth of a short step. The
    computation of the step itself is compiled in the same way.

    Args:
        function: A `tf.function` of a batch.
        whole: A training function of the same model. When there are no more batches, it still does everything in a step
            that needs none, such as counting. None for a training function that runs `function`; it must not order its
            updates after ops that need the batch.
    """

    def __init__(self, function: Any, whole: Callable[[Any], Any] | None = None) -> None:
        self._function = function
        self._whole = _drawing(function) if whole is None else whole
        self._concrete: Any = None
        self._is_first_trace = False
        self.spec: Any = None

    def drawn(self, iterator: Any) -> Any:
        """The next batch. Raises what `iterator` raises at its end, and `Refused` if drawing a batch fails."""
        if iterator.element_spec is not self.spec or self._is_first_trace:
            # With the type of the iterator, and not the shape of this particular batch.
            self._trace(without_optionals(iterator.element_spec))
            self.spec = iterator.element_spec
        try:
            return without_optionals(iterator.get_next())
        except tf.errors.OutOfRangeError:
            self._whole(drawn_from(iterator))
            raise
        except Exception as own:
            raise Refused(own) from own

    def _trace(self, spec: Any) -> None:
        self._is_first_trace = False
        try:
            self._concrete = self._function.get_concrete_function(spec)
        except UnliftableError:
            self._concrete = first_trace(self._function)
            self._is_first_trace = True
            if self._concrete is None:
                raise

    def __call__(self, batch: Any) -> Any:
        """Runs the step on a batch that was drawn. Raises `StepFailed` with that batch."""
        try:
            return self._concrete(batch)
        except Exception as error:
            raise StepFailed(error, iter(dataset_of([batch], self.spec))) from error

    def on_next(self, iterator: Any) -> Any:
        """Behaves like a training function."""
        return self(self.drawn(iterator))


class StepsOfBatches:
    """Whole executions of a training function, on batches that are drawn for it.

    Args:
        function: Built by Keras. It draws as many batches as `count` returns before each run.
        count: Number of steps of the next execution; Keras 2 shortens the last one of an epoch.
        most: Number of executions after which it draws its batches itself; None if it never does.
    """

    def __init__(self, function: Callable[[Any], Any], count: Callable[[], int], most: int | None) -> None:
        self._function = function
        self._count = count
        self._left = most

    def __call__(self, iterator: Any) -> Any:
        """Behaves like the training function. Raises `StepFailed` with the batches that were drawn for it."""
        if self._left == 0:
            return self._function(iterator)
        batches = self._drawn(iterator)
        try:
            results = self._function(iter(dataset_of(batches, iterator.element_spec)))
        except (StopIteration, tf.errors.OutOfRangeError):
            raise
        except Exception as error:
            raise StepFailed(error, iter(dataset_of(batches, iterator.element_spec))) from error
        if self._left is not None:
            self._left -= 1
        return results

    def _drawn(self, iterator: Any) -> list[Any]:
        batches: list[Any] = []
        try:
            for _ in range(self._count()):
                batches.append(iterator.get_next())
        except tf.errors.OutOfRangeError:
            pass
        except Exception as own:
            raise Refused(own) from own
        return batches


def _drawing(function: Any) -> Any:
    """The training function that Keras would create for a step."""

    def on_next(iterator: Any) -> Any:
        return function(without_optionals(iterator.get_next()))

    return tf.function(tf.autograph.experimental.do_not_convert(on_next), reduce_retracing=True)
