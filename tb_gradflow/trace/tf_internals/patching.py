"""Puts something else in the place of a function, for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any


def replaced(undo: contextlib.ExitStack, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
    """Replaces what `owner` itself has under `name`, if it has, until `undo` is closed."""
    if name in vars(owner):
        original = vars(owner)[name]
        setattr(owner, name, wrap(original))
        undo.callback(setattr, owner, name, original)
