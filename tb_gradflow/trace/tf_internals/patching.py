"""Replaces functions temporarily."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

from tb_gradflow.trace.protection.functions import Given, Part, hearer_of_faults, protected
from tb_gradflow.trace.tf_internals.private_symbols import Symbol, symbol_of

_MISSING: dict[tuple[str, str], str] = {}


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
    """Replaces the attribute `name` of `owner` until `undo` is closed. Faults of the replacement are reported to the
    current receiver of faults, not raised in its caller; for `given` and `part` see `protection.functions`. What
    `raises` does so on purpose.

    If it is missing, and `private_symbols` does not list it as optional, a warning reports that once.
    """
    if is_there(owner, name):
        original = vars(owner)[name]
        undo.callback(setattr, owner, name, original)
        stand_in = wrap(original) if raises else protected(original, wrap, hearer_of_faults(), given, part)
        setattr(owner, name, stand_in)
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
