"""Keras's own training function, where a recorder's has run in its place.

While a recorder runs steps of its own, Keras's is not traced. A later fit that runs it, without `compile` in between,
is to trace it as it would have been traced: with the layers frozen that were frozen then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tensorflow.python.eager.polymorphic_function import polymorphic_function


class AsCompiled:
    """A training function of Keras 3 that was never traced; when that happens, it is with the flags of now.

    Keras 2 itself puts the flags back while it trains.
    """

    def __init__(self, function: Any, model: Any) -> None:
        self.function = function
        owners = (*model._flatten_layers(), *model.variables)
        self._flags = [(each, bool(vars(each)["_trainable"])) for each in owners if "_trainable" in vars(each)]

    def __call__(self, iterator: Any) -> Any:
        now = [(each, bool(vars(each)["_trainable"])) for each, _ in self._flags]
        _set(self._flags)
        try:
            return self.function(iterator)
        finally:
            _set(now)
            self._flags = []


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
