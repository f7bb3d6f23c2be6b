"""Pauses Python's garbage collection while very many records are created."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_inside = 0
_was_on = False


@contextmanager
def without_collections() -> Iterator[None]:
    """Within this context no thread runs a garbage collection; when the last one leaves, the previous state is
    restored.

    A decoded trace is millions of objects without a cycle, and none of them can be freed. Scanning them again and again
    while their number grows takes a third of the decoding time.
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


def _in_fork() -> None:
    """A thread that was in there does not exist here."""
    global _lock, _inside
    _lock = threading.Lock()
    if _inside and _was_on:
        gc.enable()
    _inside = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_fork)
