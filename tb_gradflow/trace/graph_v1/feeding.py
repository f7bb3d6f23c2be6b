"""Keeps it possible to feed the tensors of a graph.

TensorFlow forbids to feed a tensor once anyone has looked at its value in the graph (`tf.get_static_value`). The
program may feed it all the same if only the recorder has looked: nothing was built from that.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def feeding_kept(graph: Any) -> Iterator[None]:
    """While the context is open, no tensor of the graph becomes one that cannot be fed through anything in this
    thread.
    """
    thread, original = threading.current_thread(), graph.prevent_feeding

    def prevent_feeding(tensor: Any) -> None:
        if threading.current_thread() is not thread:
            original(tensor)

    graph.prevent_feeding = prevent_feeding
    try:
        yield
    finally:
        del graph.prevent_feeding
