"""Removes the recorder's own lines from the traceback that ends a program."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep

_is_installed = False


def install() -> None:
    """Runs before Python prints an uncaught exception. A program that installs its own excepthook is left alone."""
    global _is_installed
    if _is_installed:
        return
    _is_installed = True
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _without_own(sys.excepthook)
    threading.excepthook = _without_own_of_thread(threading.excepthook)


def _without_own(show: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(show)
    def hook(kind: Any, error: Any, traceback: Any) -> None:
        show(kind, error, clean(error, traceback))

    return hook


def _without_own_of_thread(show: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(show)
    def hook(args: Any) -> None:
        if args.exc_value is not None:
            clean(args.exc_value, args.exc_traceback)
        show(args)

    return hook


def clean(error: BaseException, traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without our lines; chained exceptions are cleaned too."""
    seen: set[int] = set()
    behind: list[BaseException | None] = [error.__cause__, error.__context__]
    while behind:
        each = behind.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            each.__traceback__ = _cleaned(each.__traceback__)
            behind += [each.__cause__, each.__context__]
    cleaned = _cleaned(traceback)
    error.__traceback__ = cleaned
    return cleaned


def _cleaned(traceback: TracebackType | None) -> TracebackType | None:
    kept = []
    while traceback is not None:
        if not _is_own(traceback.tb_frame.f_code.co_filename):
            kept.append(traceback)
        traceback = traceback.tb_next
    for each, following in zip(kept, [*kept[1:], None], strict=False):
        each.tb_next = following
    return kept[0] if kept else None


def _is_own(file: str) -> bool:
    return file.startswith(PACKAGE) and "/demo/" not in file
