"""Reads the local variables of running functions, which do not notice it.

Up to Python 3.12, a function has one dictionary for `locals()` and `frame.f_locals`. Each request writes the current
values into it: a program that has kept its arguments by `config = locals()` would find its model among them. And the
values stay there until the function returns, whatever it deletes.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from types import CodeType, FrameType
from typing import Any

_HAS_DICTIONARY = sys.version_info < (3, 13)

_KEEPING = frozenset({"locals", "vars", "exec", "eval"})
"""By these functions a program uses its dictionary."""

_OF_FRAMES = frozenset({"f_locals", "getargvalues", "currentframe", "_getframe"})
"""And by these, which are mostly attributes of a module."""

_OURS = 3
"""References to the dictionary of a function that nobody else has requested: its frame, and two here."""


def local_variables(frame: FrameType) -> dict[str, Any]:
    """Those of a function, by name; none of a function that may have kept its dictionary."""
    if not _HAS_DICTIONARY or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return dict(frame.f_locals)
    if _may_keep(frame.f_code):
        return {}
    dictionary = frame.f_locals
    values = dict(dictionary)
    # A trace function writes the dictionary back.
    if frame.f_trace is None and sys.getrefcount(dictionary) <= _OURS:
        dictionary.clear()
    return values


@functools.lru_cache(maxsize=1000)
def _may_keep(code: CodeType) -> bool:
    if not _OF_FRAMES.isdisjoint(code.co_names):
        return True
    if _KEEPING.isdisjoint(code.co_names):
        return False
    # As names, not as attributes: pytest writes `@py_builtins.locals()` into each function with an assertion.
    return any(each.opname == "LOAD_GLOBAL" and each.argval in _KEEPING for each in dis.get_instructions(code))
