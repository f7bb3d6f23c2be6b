"""Keras's own training function, where a recorder's has run in its place.

While a recorder runs steps of its own, Keras's is not traced. Where it runs all the same, between recorded steps or in
a later fit without `compile` in between, it is to be traced as it would have been: with the layers frozen that were
frozen then, and with the numbers that the step's Python code found then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tensorflow.python.eager.polymorphic_function import polymorphic_function

from tb_gradflow.trace.traced_numbers import TracedNumbers


class AsCompiled:
    """A training function of Keras that was never traced.

    Args:
        function: The training function.
        numbers: Those that the step was traced with.

    Attributes:
        has_run: Whether it was traced by now, so that there is nothing to stand for any more.
    """

    def __init__(self, function: Any, numbers: TracedNumbers) -> None:
        self.function = function
        self._numbers = numbers
        self._flags: dict[int, tuple[Any, bool]] = {}
        self.has_run = False

    def freeze_as_now(self, model: Any) -> None:
        """When the function is traced, layers and weights that were not there before have the flags that they have
        now."""
        for each in (*model._flatten_layers(), *model.variables):
            if "_trainable" in vars(each):
                self._flags.setdefault(id(each), (each, bool(vars(each)["_trainable"])))

    def __call__(self, iterator: Any) -> Any:
        if self.has_run:
            return self.function(iterator)
        flags = list(self._flags.values())
        now = [(each, bool(vars(each)["_trainable"])) for each, _ in flags]
        _set(flags)
        try:
            with self._numbers.as_traced():
                results = self.function(iterator)
        finally:
            _set(now)
        self.has_run = True
        self._flags.clear()
        return results


def _set(flags: Sequence[tuple[Any, bool]]) -> None:
    # Past the setter of a layer, which sets those of all its weights.
    for each, flag in flags:
        vars(each)["_trainable"] = flag


def keras_own(function: Any) -> Any:
    """The training function that one of a model stands for, or is."""
    return function.function if isinstance(function, AsCompiled) else function


def traced(function: Any) -> Iterator[Any]:
    """What TensorFlow has traced a training function to."""
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    for each in (function, *cells):
        if isinstance(each, polymorphic_function.Function):
            yield from each._list_all_concrete_functions()
