"""Slow answers, computed by a few threads: a caller waits for a while, and takes what is ready by then.

After that, only work that has already begun continues, so a queue cannot keep a server from ending.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

from tb_gradflow.serve.runs.giving_way import GIVING_WAY
from tb_gradflow.serve.runs.readers import READERS

Key = TypeVar("Key", bound=Hashable)
Answer = TypeVar("Answer")


@functools.lru_cache(maxsize=1)
def _threads(process: int) -> ThreadPoolExecutor:
    """The threads of this process, as in `readers`. They are separate from those, because work in them may read in
    parallel.
    """
    return ThreadPoolExecutor(READERS, thread_name_prefix=f"gradflow-background-{process}")


def _giving_way(make: Callable[[], Answer]) -> Answer:
    """Whoever waits for the answers must see in time that the wait is over."""
    with GIVING_WAY:
        return make()


class Background(Generic[Key, Answer]):
    """Answers by key. An answer never changes: if it could, the new one has another key."""

    def __init__(self) -> None:
        self._known: dict[Key, Answer] = {}
        self._running: dict[Key, Future[Answer]] = {}
        self._lock = threading.Lock()

    def ask(self, wanted: Mapping[Key, Callable[[], Answer]], seconds: float) -> dict[Key, Answer]:
        """The answers that are ready after this many seconds, or as soon as all of them are ready.

        They are computed in the order of `wanted`. Answers for other keys are dropped. An exception is raised here, and
        is not remembered.
        """
        deadline = time.monotonic() + seconds
        while True:
            running = self._advance(wanted)
            left = deadline - time.monotonic()
            if not running or left <= 0 or not wait(running, left, FIRST_COMPLETED).done:
                self._advance(wanted)
                with self._lock:
                    return {key: self._known[key] for key in wanted if key in self._known}

    def _advance(self, wanted: Mapping[Key, Callable[[], Answer]]) -> list[Future[Answer]]:
        """Takes finished answers, starts the next ones, and returns what is running."""
        with self._lock:
            for key in [key for key, future in self._running.items() if future.done()]:
                self._known[key] = self._running.pop(key).result()
            for key in self._known.keys() - wanted.keys():
                del self._known[key]
            for key, make in wanted.items():
                if len(self._running) >= READERS:
                    break
                if key not in self._known and key not in self._running:
                    self._running[key] = _threads(os.getpid()).submit(_giving_way, make)
            return list(self._running.values())
