"""Holds Python's search for cycles while very many records are made."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_inside = 0
_was_on = False


@contextmanager
def without_collections() -> Iterator[None]:
    """Inside, whichever thread it is in, nobody searches for cycles; with the last that leaves, it is as it was before.

    A decoded trace is millions of objects without a cycle, and none of them can go: searching through them again and
    again, as their number grows, takes a third of the time that decoding takes.
    """
    global _inside, _was_on
    with _lock:
        if _inside == 0:
            _was_on = gc.isenabled()
            gc.disable()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and _was_on:
                gc.enable()
