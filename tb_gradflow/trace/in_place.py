"""The function that a model of Keras trains with, while a recorder puts its own in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tb_gradflow.trace.as_compiled import keras_own

_KERAS = frozenset({"keras", "tf_keras"})

SET_BY_USER = (
    "`model.train_function` was set to a function that Keras did not make. Put what it does into `train_step`, or into "
    "`make_train_function`, of the model."
)

REPLACED = (
    "tb_gradflow: the model's training function was replaced in the middle of `fit`, as `compile` and "
    "`make_train_function` do. The rest of this fit is not recorded."
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
