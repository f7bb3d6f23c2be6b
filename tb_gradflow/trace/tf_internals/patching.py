"""Replaces functions temporarily."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import Callable
from typing import Any

from tb_gradflow.trace.protection.beside import surely
from tb_gradflow.trace.protection.functions import Given, Part, Use, hearer_of_faults, protected
from tb_gradflow.trace.tf_internals.private_symbols import Symbol, symbol_of

_MISSING: dict[tuple[str, str], str] = {}


class _Replacement:
    """An attribute that is replaced now."""

    def __init__(self, owner: Any, name: str, original: Any) -> None:
        self.thread = threading.current_thread()
        self.use = Use()
        self._owner = owner
        self._name = name
        self._original = original
        self._stand_in: Any = None

    def begins(self, stand_in: Any) -> None:
        """Replaces the original by `stand_in`."""
        self._stand_in = stand_in
        _REPLACEMENTS[id(self)] = self
        setattr(self._owner, self._name, stand_in)

    def ends(self) -> None:
        """Restores the original; but what the program, or a library in it, has assigned in the meantime remains, and
        what that calls is the original again."""
        self.use.is_over = True
        if vars(self._owner).get(self._name) is self._stand_in:
            setattr(self._owner, self._name, self._original)
        _REPLACEMENTS.pop(id(self), None)


_REPLACEMENTS: dict[int, _Replacement] = {}
"""In the order in which they began."""


def _end_replacements_of_other_threads() -> None:
    """In a forked process, which has none of the other threads, so that none of them will restore anything."""
    for each in reversed([*_REPLACEMENTS.values()]):
        if each.thread is not threading.current_thread():
            each.ends()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_end_replacements_of_other_threads)


def replaced(
    undo: contextlib.ExitStack,
    owner: Any,
    name: str,
    wrap: Callable[[Any], Any],
    *,
    given: Given | None = None,
    part: Part | None = None,
    raises: bool = False,
) -> None:
    """Replaces the attribute `name` of `owner` until `undo` is closed, or another thread forks the process. Faults of
    the replacement are reported to the current receiver of faults, not raised in its caller; for `given` and `part` see
    `protection.functions`. What `raises` does so on purpose.

    If it is missing, and `private_symbols` does not list it as optional, a warning reports that once.
    """
    if is_there(owner, name):
        original = vars(owner)[name]
        replacement = _Replacement(owner, name, original)
        use = replacement.use
        stand_in = wrap(original) if raises else protected(original, wrap, hearer_of_faults(), given, part, use)
        undo.callback(surely, replacement.ends)
        replacement.begins(stand_in)
        return
    symbol = symbol_of(name_of_owner(owner), name)
    if symbol is not None and not symbol.optional:
        _note(symbol, name)


def is_there(owner: Any, name: str) -> bool:
    """Whether a class or a module defines a function itself."""
    return name in vars(owner)


def name_of_owner(owner: Any) -> str:
    """The name of a class, or the last part of a module's."""
    return str(owner.__name__).rpartition(".")[2]


def missing() -> tuple[str, ...]:
    """What is not recorded because a function was missing, one sentence each."""
    return tuple(_MISSING.values())


def _note(symbol: Symbol, name: str) -> None:
    key = (symbol.owner, name)
    if key in _MISSING:
        return
    oldest, newest = symbol.seen
    _MISSING[key] = (
        f"`{symbol.owner}.{name}` was not found; versions {oldest} to {newest} have it. Not recorded: {symbol.lost}."
    )
    with warnings.catch_warnings():
        # If warnings are errors, this warning must not become one: it would end the training.
        warnings.simplefilter("default")
        warnings.warn(f"tb_gradflow: {_MISSING[key]} Training continues.", RuntimeWarning, stacklevel=3)
