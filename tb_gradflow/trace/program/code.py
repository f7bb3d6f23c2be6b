"""Whether a function is likely to take a gradient, as its code and that of what it calls says."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

_SAYING = frozenset({"GradientTape", "minimize", "gradients", "apply_gradients"})

_LIBRARIES = frozenset({"tensorflow", "keras", "tf_keras", "numpy", "tb_gradflow"})

_MOST_FUNCTIONS = 300


def seems_to_take_gradients(function: Any) -> bool:
    """Whether some function within reach of this one names a tape or an optimizer's update. A guess, either way: what
    is called by a name that only the running program knows is not found."""
    seen: set[CodeType] = set()
    waiting = [inspect.unwrap(_plain(function))]
    while waiting and len(seen) < _MOST_FUNCTIONS:
        found = _plain(waiting.pop())
        code = getattr(found, "__code__", None)
        if not isinstance(found, FunctionType) or not isinstance(code, CodeType) or code in seen:
            continue
        seen.add(code)
        names = frozenset(_names(code))
        if names & _SAYING:
            return True
        waiting.extend(_called(found, names))
    return False


def of_library(function: Any) -> bool:
    """Whether TensorFlow, Keras or the recorder has made a function for a purpose of its own."""
    found = inspect.unwrap(_plain(function))
    return str(getattr(found, "__module__", "")).partition(".")[0] in _LIBRARIES


def _plain(function: Any) -> Any:
    """Of a method, of a `tf.function` and of a partial function the Python function in it."""
    while True:
        inner = next(
            (each for name in _INSIDE if (each := _attribute(function, name)) is not None and each is not function),
            None,
        )
        if inner is None or isinstance(function, FunctionType):
            return function
        function = inner


_INSIDE = ("__func__", "python_function", "func")


def _attribute(value: Any, name: str) -> Any:
    try:
        return inspect.getattr_static(value, name, None) and getattr(value, name, None)
    except Exception:  # what an object of the program's answers is its own business
        return None


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _called(function: FunctionType, names: frozenset[str]) -> Iterator[Any]:
    """What the names in a function may stand for: globals, variables of the function around it, methods of objects
    that it holds."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    held = []
    for cell in cells.values():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # not filled yet
            continue
    held += [function.__globals__[name] for name in names if name in function.__globals__]
    for each in held:
        if callable(each) and not isinstance(each, type):
            yield each
        if isinstance(each, MethodType):
            each = each.__self__
        yield from _methods(each, names)


def _methods(owner: Any, names: frozenset[str]) -> Iterator[Any]:
    kind = owner if isinstance(owner, type) else type(owner)
    if kind.__module__.partition(".")[0] in _LIBRARIES | {"builtins"}:
        return
    for name in names:
        found = inspect.getattr_static(kind, name, None)
        if found is not None:
            yield found
