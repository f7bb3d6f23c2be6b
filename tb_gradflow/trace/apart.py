"""Calls to gradient functions of the user's own that the user's tapes are not to see.

`record.stop_recording` would stop the tapes, too, that such a function opens itself, and those answer None then: a
gradient that recomputes its forward pass, or solves for a fixed point, would look as if it had none.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import tensorflow as tf
from tensorflow.python.eager import record

T = TypeVar("T")


def apart(function: Callable[..., T], *arguments: Any) -> T:
    """What the function returns. Tapes belong to threads: in another one none is open but those it opens itself.

    The default graph is the caller's. Raises whatever the function raises here, in the caller's thread, as it may need
    something that belongs to the thread as well.
    """
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()

    def call() -> T:
        if graph is None:
            return function(*arguments)
        with graph.as_default():
            return function(*arguments)

    try:
        with ThreadPoolExecutor(1) as threads:
            return threads.submit(call).result()
    # The user's function is foreign code, and may raise anything.
    except Exception:
        with record.stop_recording():
            return function(*arguments)
