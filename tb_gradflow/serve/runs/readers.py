"""Reads the chunks of a run in parallel.

The threads are kept: the C library's allocator creates a heap for each new thread, and these heaps added up to a
hundred megabytes while a run grew.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

# TensorBoard's Rust loader takes about 40 ms for each small read when reads are sequential.
READERS = 8

Item = TypeVar("Item")
Result = TypeVar("Result")


@functools.lru_cache(maxsize=1)
def _threads(process: int) -> ThreadPoolExecutor:
    """The threads of this process; a forked child has none of its parent's."""
    return ThreadPoolExecutor(READERS, thread_name_prefix=f"gradflow-reader-{process}")


def side_by_side(read: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The results of `read` for each item, in order; raises the first exception of a `read`.

    `read` must not call this function itself: all threads could wait for one another.
    """
    return list(_threads(os.getpid()).map(read, items))
