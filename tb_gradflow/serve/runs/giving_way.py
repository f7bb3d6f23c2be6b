"""Work that yields to other threads more often than Python lets it by default."""

from __future__ import annotations

import sys
import threading

SWITCH = 0.0005
"""Seconds after which a working thread yields to another one. Python's default is ten times as long, and a request of
another tab waits that long each time that it has sent or received something."""


class _GivingWay:
    """While any thread is inside, Python switches threads more often. Restores the previous interval afterwards."""

    def __init__(self) -> None:
        self._inside = 0
        self._before = 0.0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, SWITCH))
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                sys.setswitchinterval(self._before)


GIVING_WAY = _GivingWay()
