"""The function that a model of Keras trains with: Keras's own, and the recorder's in its place.

While a recorder runs steps of its own, Keras's is not traced. Where it runs all the same, between recorded steps or in
a later fit without `compile` in between, it is to be traced as it would have been: with the layers frozen that were
frozen then, and with the numbers that the step's Python code found then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensorflow.python.eager.polymorphic_function import polymorphic_function

from tb_gradflow.trace.fidelity.python_constants import TracedNumbers


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
    """What Keras runs next. Past its own way to set an attribute, which takes ten microseconds to track nothing."""
    model.__dict__["train_function"] = function


def owner(model: Any) -> Any:
    """The object whose method the model trains with; null if it is a function."""
    return getattr(getattr(model, "train_function", None), "__self__", None)


def is_of_the_user(model: Any) -> bool:
    """Whether somebody has put a function of their own where Keras would have made one."""
    function = keras_own(model.train_function)
    made = getattr(function, "python_function", function)
    if made is None:  # a coordinator of workers makes it later
        return False
    return _is_of_keras(type(model).make_train_function, model.make_train_function) and not _is_of_keras(made)


def _is_of_keras(*functions: Any) -> bool:
    modules = [str(getattr(function, "__module__", None)) for function in functions]
    return all(module.partition(".")[0] in _KERAS for module in modules)
