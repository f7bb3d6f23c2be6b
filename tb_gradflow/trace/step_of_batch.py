"""A step of `fit` that is called with its batch, without the function that Keras compiles around it.

Keras draws a batch inside of that function and wraps up what it returns, which takes a tenth of a short step. What the
step itself computes is compiled in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.batches import without_optionals
from tb_gradflow.trace.own_trace import Refused


class StepOfBatch:
    """One step on the batches of one iterator after the other.

    Args:
        function: A `tf.function` of a batch.
        whole: A training function of the same model. Where there are no more batches, it still does what a step does
            that needs none, such as to count.
    """

    def __init__(self, function: Any, whole: Callable[[Any], Any]) -> None:
        self._function = function
        self._whole = whole
        self._concrete: Any = None
        self.spec: Any = None

    def drawn(self, iterator: Any) -> Any:
        """The next batch. Raises what `iterator` raises at its end, and `Refused` where there is an error in it."""
        if iterator.element_spec is not self.spec:
            # Of the type that the iterator has, and not of the shape that this batch happens to have.
            self._concrete = self._function.get_concrete_function(without_optionals(iterator.element_spec))
            self.spec = iterator.element_spec
        try:
            return without_optionals(iterator.get_next())
        except tf.errors.OutOfRangeError:
            self._whole(iterator)
            raise
        except Exception as own:
            raise Refused(own) from own

    def __call__(self, batch: Any) -> Any:
        """Runs the step on a batch that was drawn."""
        return self._concrete(batch)

    def on_next(self, iterator: Any) -> Any:
        """What a training function does."""
        return self(self.drawn(iterator))
