"""Names from the user's code for variables without a name: TensorFlow calls all of these `Variable`. Such a variable is
looked up where code could use it: in the functions that are running, in their closures and globals, and in the objects
and containers that these contain.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from tb_gradflow.trace.protection.local_variables import local_variables
from tb_gradflow.trace.source.frames import PACKAGE
from tb_gradflow.trace.source.user_line import is_users

_UNNAMED = re.compile(r"Variable(_\d+)?(:0)?")

# Objects in objects that are looked into: `agent.actor.weights["h1"]`.
_DEEP = 3
_MOST = 4000
_LONGEST = 40

_LIBRARIES = ("numpy", "tensorflow")
_NO_HOLDERS = (str, bytes, int, float, complex, bool, type(None), type, ModuleType, CodeType, FrameType)


def is_unnamed(name: str) -> bool:
    """Whether a variable has only the name that TensorFlow gives to those without one."""
    return _UNNAMED.fullmatch(name) is not None


def names_here(variables: Iterable[Any]) -> dict[int, str]:
    """The names of some variables in the user's running functions, by `id`; the innermost function takes precedence."""
    return _search(_running(), variables)


def names_in(holders: Iterable[Any], variables: Iterable[Any]) -> dict[int, str]:
    """Their names in functions, from everything that these may use; for callable objects, such as layers, `self.w`."""
    return _search((start for holder in holders for start in _of_function(holder)), variables)


def _running() -> Iterator[tuple[str, Any]]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(PACKAGE) and is_users(file):
            yield from local_variables(frame).items()
            if frame.f_code.co_flags & inspect.CO_OPTIMIZED or frame.f_locals is not frame.f_globals:
                yield from _used(frame.f_code, frame.f_globals)
        frame = frame.f_back


def _of_function(function: Any) -> Iterator[tuple[str, Any]]:
    function = getattr(function, "python_function", function)
    while hasattr(function, "func") and hasattr(function, "args"):  # functools.partial
        function = function.func
    if isinstance(function, MethodType):
        yield "self", function.__self__
        function = function.__func__
    function = getattr(function, "__wrapped__", function)
    if not isinstance(function, FunctionType):
        yield "self", function
        return
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not bound yet
            continue
    yield from _used(function.__code__, function.__globals__)


def _used(code: CodeType, known: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The globals that a function and its nested functions read; for a module's own code, all of them."""
    if code.co_name == "<module>":
        yield from list(known.items())
        return
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    for name in dict.fromkeys((*code.co_names, *(name for each in inner for name in each.co_names))):
        if name in known:
            yield name, known[name]


def _search(starts: Iterable[tuple[str, Any]], variables: Iterable[Any]) -> dict[int, str]:
    """An explicit name is better than a position in a list. Private attributes count only if they are variables, not if
    they contain some: Keras keeps a list of layers in one."""
    wanted = {id(variable) for variable in variables}
    known = [start for start in starts if not start[0].startswith("__")]
    found: dict[int, str] = {}

    def is_wanted(value: Any) -> bool:
        return id(value) in wanted

    for anywhere in (False, True):
        queue, seen = deque((name, value, 0) for name, value in known), set[int]()
        while queue and len(seen) < _MOST and len(found) < len(wanted):
            name, value, deep = queue.popleft()
            if is_wanted(value):
                found.setdefault(id(value), name)
            elif deep < _DEEP and id(value) not in seen and not isinstance(value, _NO_HOLDERS):
                seen.add(id(value))
                queue.extend((part, each, deep + 1) for part, each in _parts(name, value, anywhere, is_wanted))
    return found


def _parts(name: str, value: Any, anywhere: bool, is_wanted: Callable[[Any], bool]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        ways = [(f"[{key!r}]", part) for key, part in list(value.items())[:_MOST]]
    elif isinstance(value, (list, tuple)):
        fields = getattr(value, "_fields", None)
        if fields is None and not anywhere:
            return
        places = [f"[{place}]" for place in range(len(value))] if fields is None else [f".{field}" for field in fields]
        ways = list(zip(places, value, strict=True))
    elif isinstance(value, FunctionType) or type(value).__module__.partition(".")[0] in _LIBRARIES:
        return
    else:
        held = getattr(value, "__dict__", None)
        attributes = list(held.items()) if isinstance(held, dict) else []
        ways = [(f".{key}", part) for key, part in attributes if not key.startswith("_") or is_wanted(part)]
    yield from ((name + way, part) for way, part in ways if len(name + way) <= _LONGEST)
