"""Whether the hooks ignore a thread, because it runs a part of a training that is already recorded.

An eager step is recorded with patches that all threads share. So while one thread records an eager step, the hooks
ignore all others, and no eager recording begins while another thread is in a recorded training.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class _OfThread(threading.local):
    depth = 0


_of_thread = _OfThread()
_lock = threading.Lock()
_busy = 0
_eager_owner: int | None = None


@contextlib.contextmanager
def left_alone() -> Iterator[None]:
    """While the context is open, the hooks ignore this thread."""
    global _busy
    is_outermost = _of_thread.depth == 0
    _of_thread.depth += 1
    if is_outermost:
        with _lock:
            _busy += 1
    try:
        yield
    finally:
        _of_thread.depth -= 1
        if is_outermost:
            with _lock:
                _busy -= 1


def is_left_alone() -> bool:
    """Whether the hooks must ignore this thread now."""
    return _of_thread.depth > 0 or _eager_owner not in (None, threading.get_ident())


def claim() -> bool:
    """Whether this thread may record an eager step now. If so, the other threads are ignored until `release`."""
    global _eager_owner
    with _lock:
        if _busy or _eager_owner is not None:
            return False
        _eager_owner = threading.get_ident()
        return True


def release() -> None:
    """Called when the eager step is over."""
    global _eager_owner
    with _lock:
        _eager_owner = None
