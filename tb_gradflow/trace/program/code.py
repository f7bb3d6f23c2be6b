"""Whether a function is likely to take a gradient, judging by its code and the code that it calls."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

_SAYING = frozenset({"GradientTape", "minimize", "gradients", "apply_gradients"})

_LIBRARIES = frozenset({"tensorflow", "keras", "tf_keras", "numpy", "tb_gradflow", "builtins"})

_MOST_FUNCTIONS = 300


def seems_to_take_gradients(function: Any) -> bool:
    """Whether some function reachable from this one names a tape or an optimizer's update. This is a guess in both
    directions: calls whose target is known only at run time are not found.
    """
    seen: set[tuple[CodeType, int]] = set()
    waiting = [function]
    while waiting and len(seen) < _MOST_FUNCTIONS:
        plain, owner = _taken_apart(waiting.pop())
        if plain is None or (plain.__code__, id(owner)) in seen:
            continue
        seen.add((plain.__code__, id(owner)))
        names = frozenset(_names(plain.__code__))
        if names & _SAYING:
            return True
        waiting.extend(_called(plain, owner, names))
    return False


def of_library(function: Any) -> bool:
    """Whether TensorFlow, Keras or the recorder created a function for its own purposes."""
    plain, _ = _taken_apart(function)
    return _is_of_library(plain if plain is not None else function)


def _is_of_library(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).partition(".")[0] in _LIBRARIES


def _taken_apart(function: Any) -> tuple[FunctionType | None, Any]:
    """The Python function in a method, a `tf.function` or a partial function, and the object that it is a method of."""
    owner = None
    for _ in range(20):
        own = getattr(function, "__self__", None)
        if own is not None:
            # TensorFlow's methods hold their instance weakly.
            owner = getattr(own, "target", own) if type(own).__name__ == "TfMethodTarget" else own
        inner = next((each for each in _INSIDE if _has(function, each)), None)
        if inner is None:
            break
        function = getattr(function, inner)
    return (function if isinstance(function, FunctionType) else None), owner


_INSIDE = ("__func__", "__wrapped__", "python_function", "func")


def _has(value: Any, name: str) -> bool:
    try:
        return name in vars(value) or name in vars(type(value))
    except TypeError:
        return hasattr(type(value), name)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _called(function: FunctionType, owner: Any, names: frozenset[str]) -> Iterator[Any]:
    """The possible values of the names in a function: globals, variables of the enclosing function, and attributes of
    that name on objects that it can reach.
    """
    held = [owner, *(function.__globals__[name] for name in names if name in function.__globals__)]
    for cell in function.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # the cell is still empty
            continue
    for each in held:
        if each is None or _is_of_library(each if callable(each) else type(each)):
            continue
        if callable(each) and not isinstance(each, type):
            yield each
        yield from _held_by(each, names)
        for name in names & frozenset(_attributes(each)):
            yield from _held_by(_attributes(each)[name], names)


def _held_by(owner: Any, names: frozenset[str]) -> Iterator[Any]:
    """Functions and methods of an object, bound to it."""
    kind = owner if isinstance(owner, type) else type(owner)
    if _is_of_library(kind):
        return
    for name in names:
        found = _attributes(owner).get(name)
        if found is None and isinstance(inspect.getattr_static(kind, name, None), FunctionType):
            found = getattr(owner, name)
        if found is not None and callable(found):
            yield found


def _attributes(value: Any) -> dict[str, Any]:
    found = getattr(value, "__dict__", None)
    return found if isinstance(found, dict) else {}
