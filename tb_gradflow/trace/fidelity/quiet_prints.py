"""Standard output while the recorder traces a step once more: `print` in the step's Python code, which has printed when
the step was first traced, prints nothing."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any


class _OfThread(threading.local):
    depth = 0


_of_thread = _OfThread()
_lock = threading.Lock()
_open = 0
_before: Any = None


class _Quiet:
    """Replaces standard output. What other threads print is printed."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return len(text) if _of_thread.depth else self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def without_prints() -> Iterator[None]:
    """While the context is open, this thread prints nothing to standard output."""
    _replace()
    _of_thread.depth += 1
    try:
        yield
    finally:
        _of_thread.depth -= 1
        _restore()


def _replace() -> None:
    global _open, _before
    with _lock:
        if _open == 0:
            _before = sys.stdout
            sys.stdout = None if _before is None else _Quiet(_before)
        _open += 1


def _restore() -> None:
    global _open, _before
    with _lock:
        _open -= 1
        if _open == 0:
            # What the step has put in its place remains.
            if isinstance(sys.stdout, _Quiet):
                sys.stdout = _before
            _before = None
