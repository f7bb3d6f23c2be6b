"""What the reader's terminal can show."""

from __future__ import annotations

import os
import shutil
import sys

from tb_gradflow.serve.text import NARROWEST, WIDTH, Look


def look() -> Look:
    """As wide as the terminal, but no wider than reads well; in colours where it has them and nobody objects.

    Where the output goes to a file or a pipe it is plain: `NO_COLOR` (no-color.org) asks for that anywhere, and
    `FORCE_COLOR` for the opposite.
    """
    width = shutil.get_terminal_size((WIDTH, 24)).columns
    return Look(width=max(NARROWEST, min(WIDTH, width)), colour=_has_colour())


def _has_colour() -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    # Windows' old console shows the codes themselves.
    old_console = os.name == "nt" and not (os.environ.get("WT_SESSION") or os.environ.get("TERM"))
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb" and not old_console
