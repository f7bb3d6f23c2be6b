"""The function with which a Keras model trains: Keras's own, and the recorder's replacement.

While a recorder runs its own steps, Keras's function is not traced. If it runs later, between recorded steps or in a
later fit without `compile` in between, it must be traced as it would have been: with the layers frozen that were frozen
then, and with the values that the step's Python code found then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensorflow.python.eager.polymorphic_function import polymorphic_function

from tb_gradflow.trace.protection.beside import Beside, Failed, surely


class AsCompiled(Beside):
    """A training function of Keras that was never traced.

    Args:
        function: The training function.
        numbers: Returns a context in which the step is traced with the numbers of its former traces.
        failed: Called with a fault of the recorder.

    Attributes:
        has_run: Whether it has been traced by now, so that the stand-in is no longer needed.
    """

    def __init__(
        self, function: Any, numbers: Callable[[], contextlib.AbstractContextManager[None]], failed: Failed
    ) -> None:
        self.function = function
        self._numbers = numbers
        self._failed = failed
        self._flags: dict[int, tuple[Any, bool]] = {}
        self.has_run = False

    def freeze_as_now(self, model: Any) -> None:
        """When the function is traced, layers and weights that did not exist before keep their current flags."""
        for each in (*model._flatten_layers(), *model.variables):
            if "_trainable" in vars(each):
                self._flags.setdefault(id(each), (each, bool(vars(each)["_trainable"])))

    @contextlib.contextmanager
    def _as_then(self) -> Iterator[None]:
        """While the context is open, flags and numbers have their earlier values."""
        flags = list(self._flags.values())
        now = [(each, bool(vars(each)["_trainable"])) for each, _ in flags]
        try:
            _set(flags)
            with self._numbers():
                yield
        finally:
            surely(_set, now)
        self.has_run = True
        self._flags.clear()


def _set(flags: Sequence[tuple[Any, bool]]) -> None:
    # Bypasses the setter of a layer, which sets the flags of all its weights.
    for each, flag in flags:
        vars(each)["_trainable"] = flag


def keras_own(function: Any) -> Any:
    """The training function of a model, or the one that it replaces."""
    return function.function if isinstance(function, AsCompiled) else function


def traced(function: Any) -> Iterator[Any]:
    """The traces of a training function."""
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    for each in (function, *cells):
        if isinstance(each, polymorphic_function.Function):
            yield from each._list_all_concrete_functions()


_KERAS = frozenset({"keras", "tf_keras"})

SET_BY_USER = (
    "`model.train_function` was set to a function that Keras did not create. Move its code into `train_step` or "
    "`make_train_function` of the model."
)

REPLACED = (
    "tb_gradflow: the model's training function was replaced during `fit`, for example by `compile` or "
    "`make_train_function`. The rest of this fit is not recorded."
)


def put(model: Any, function: Callable[[Any], Any]) -> None:
    """Sets the function that Keras runs next. Bypasses Keras's attribute tracking, which takes ten microseconds for
    nothing.
    """
    model.__dict__["train_function"] = function


def owner(model: Any) -> Any:
    """The object whose method trains the model; None if it is a function."""
    return getattr(getattr(model, "train_function", None), "__self__", None)


def is_of_the_user(model: Any) -> bool:
    """Whether the user has set a function where Keras would have created one."""
    function = keras_own(model.train_function)
    made = getattr(function, "python_function", function)
    if made is None:  # a coordinator of workers creates it later
        return False
    return _is_of_keras(type(model).make_train_function, model.make_train_function) and not _is_of_keras(made)


def _is_of_keras(*functions: Any) -> bool:
    modules = [str(getattr(function, "__module__", None)) for function in functions]
    return all(module.partition(".")[0] in _KERAS for module in modules)
