"""The function with which a Keras model trains, and what the recorder puts in its place while one execution runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tensorflow.python.eager.polymorphic_function import polymorphic_function

from tb_gradflow.trace.fit.fitted_steps import EagerFit
from tb_gradflow.trace.observed.observed_steps import ObservedSteps


class StandIn:
    """Replaces the training function of a model for one execution.

    Args:
        model: The model.
        plain: Its own.
        steps: Take part.
        recorder: Whose it is.
    """

    def __init__(self, model: Any, plain: Any, steps: ObservedSteps | EagerFit, recorder: Any) -> None:
        self._model = model
        self._plain = plain
        self._steps = steps
        self.__self__ = recorder

    def __call__(self, iterator: Any) -> Any:
        put(self._model, self._plain)
        protection = self.__self__.protection
        if protection.is_over:
            return self._plain(iterator)
        steps, run = self._steps, self._plain
        self.__self__.draws_from(iterator)
        if isinstance(steps, EagerFit):
            run = protection.attempt(steps.function, run) or run
        else:
            steps.given = (iterator,), {}
        return protection.accompany(lambda: run(iterator), looking_on=steps.looking_on, raised=self.__self__.has_raised)


def traced(function: Any) -> Iterator[Any]:
    """The traces of a training function."""
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    for each in (function, *cells):
        if isinstance(each, polymorphic_function.Function):
            yield from each._list_all_concrete_functions()


def put(model: Any, function: Callable[[Any], Any]) -> None:
    """Sets the function that Keras runs next. Bypasses Keras's attribute tracking, which takes ten microseconds for
    nothing.
    """
    model.__dict__["train_function"] = function


def owner(model: Any) -> Any:
    """The object whose method trains the model; None if it is a function."""
    return getattr(getattr(model, "train_function", None), "__self__", None)
