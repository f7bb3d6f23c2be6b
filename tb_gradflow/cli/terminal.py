"""The width and the colours of the reader's terminal."""

from __future__ import annotations

import os
import shutil
import sys

from tb_gradflow.serve.terminal.text import NARROWEST, WIDTH, Look


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
