"""Parts of a model that only a method computes with which a training step does not go through.

A head for the fine-tuning after a pre-training, an encoder that is only called for predictions: the step leaves them
alone, and is meant to.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import weakref
from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any

# Methods that create or describe the parts, and compute nothing in a step.
_MAKING = frozenset({"__init__", "build", "compile", "get_config", "from_config", "summary"})

# Where a training step comes along, unless the class has one of its own, which may call parts of the model alone.
_TRAINING = frozenset({"call", "train_step", "compute_loss", "__call__"})
_OWN = "train_step"


# Methods that compute a model's output: variables that only these use should have been trained.
_ANSWERING = frozenset({"test_step", "predict_step", "predict", "evaluate", "predict_on_batch"})


def only_elsewhere(model: Any) -> Iterator[tuple[Sequence[Any], str]]:
    """The weights of each such part, with the method that computes with it, as `classify`."""
    parts = {
        name: value
        for name, value in vars(model).items()
        if not name.startswith("_") and hasattr(value, "trainable_variables") and not hasattr(value, "apply_gradients")
    }
    if not parts:
        return
    read = {
        name: attributes for kind in type(model).__mro__ for name, attributes in _attributes_by_method(kind).items()
    }
    begins = {_OWN} if _OWN in read else _TRAINING
    stepped, queue = set[str](), [name for name in read if name in begins]
    for method in queue:  # grows while it is walked
        stepped |= read[method]
        queue.extend(name for name in read[method] if name in read and name not in queue)
    for name, part in parts.items():
        others = [method for method in read if method not in queue and method not in _MAKING and name in read[method]]
        if others and name not in stepped and _ANSWERING.isdisjoint(others):
            yield part.variables, others[0]


_known: weakref.WeakKeyDictionary[type, dict[str, set[str]]] = weakref.WeakKeyDictionary()


def _attributes_by_method(kind: type) -> dict[str, set[str]]:
    """For each method of a user's class, the attributes of `self` that it uses; empty if the source is not known."""
    # A step asks for each variable that it meets.
    if kind not in _known:
        _known[kind] = _read_attributes(kind)
    return _known[kind]


def _read_attributes(kind: type) -> dict[str, set[str]]:
    if kind.__module__.partition(".")[0] in ("builtins", "keras", "tensorflow", "tf_keras"):
        return {}
    return {name: _used_by(function) for name, value in vars(kind).items() if (function := _function_of(value))}


def _function_of(value: Any) -> FunctionType | None:
    """The function of a method, also of a property and under `tf.function`."""
    function = getattr(value, "python_function", getattr(value, "fget", value))
    return function if isinstance(function, FunctionType) else None


def _used_by(function: FunctionType) -> set[str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return set()
    return {
        "call" if isinstance(node, ast.Call) else node.attr
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and _is_self(node.value))
        or (isinstance(node, ast.Call) and _calls_the_model(node))
    }


def _calls_the_model(node: ast.Call) -> bool:
    """Whether it is `self(...)`, or what a base class does."""
    return _is_self(node.func) or (isinstance(node.func, ast.Name) and node.func.id == "super")


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"
