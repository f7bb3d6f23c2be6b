"""Reads the chunks of a run side by side.

The threads are kept: the C library's allocator has a heap for each new one, and what such heaps keep added up to a
hundred megabytes while a run grew.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

# TensorBoard's Rust loader takes some 40 ms for each small thing that is read one after the other.
READERS = 8

Item = TypeVar("Item")
Result = TypeVar("Result")


@functools.lru_cache(maxsize=1)
def _threads(process: int) -> ThreadPoolExecutor:
    """Those of a process: a child that was forked has none of its parent's."""
    return ThreadPoolExecutor(READERS, thread_name_prefix=f"gradflow-reader-{process}")


def side_by_side(read: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """What `read` answers for each of the items, in their order; the first exception if it raises one.

    `read` must not come here itself: all threads could wait for one another.
    """
    return list(_threads(os.getpid()).map(read, items))
