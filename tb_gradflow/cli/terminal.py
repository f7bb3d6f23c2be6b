"""The reader's terminal: its width and colours, and a line for whoever waits at it."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
from collections.abc import Iterator

from tb_gradflow.serve.terminal.text import NARROWEST, WIDTH, Look

PATIENCE = 2.0
"""Seconds after which people wonder whether anything happens."""


@contextlib.contextmanager
def told_if_long(what: str) -> Iterator[None]:
    """Says `what` on standard error, if the context stays open for long; the line is gone when it closes. Nobody waits
    at a file or a pipe.
    """
    if not sys.stderr.isatty():
        yield
        return
    told = threading.Event()

    def tell() -> None:
        told.set()
        print(f"\r{what} …", end="", file=sys.stderr, flush=True)

    timer = threading.Timer(PATIENCE, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if told.is_set():
            print("\r" + " " * (len(what) + 2), end="\r", file=sys.stderr, flush=True)


def look() -> Look:
    """As wide as the terminal, up to a readable width; in colour if the terminal supports it and nothing forbids it.

    If the output goes to a file or a pipe, it is plain. `NO_COLOR` (no-color.org) turns colours off everywhere, and
    `FORCE_COLOR` turns them on.
    """
    width = shutil.get_terminal_size((WIDTH, 24)).columns
    return Look(width=max(NARROWEST, min(WIDTH, width)), colour=_has_colour())


def _has_colour() -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    # The old Windows console shows the escape codes themselves.
    old_console = os.name == "nt" and not (os.environ.get("WT_SESSION") or os.environ.get("TERM"))
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not old_console
