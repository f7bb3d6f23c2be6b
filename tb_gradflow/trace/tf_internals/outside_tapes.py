"""Calls custom gradient functions in a way that the user's tapes do not record.

`record.stop_recording` would also stop tapes that such a function opens itself, and these would then return None: a
gradient that recomputes its forward pass, or solves for a fixed point, would seem to have none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf
from tensorflow.python.eager import record

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds. A function that waits for something that the caller's thread holds, such as TensorFlow's lock on a function
that is being traced, would wait forever.
"""


def untaped(function: Callable[..., T], *arguments: Any) -> T:
    """The result of the function. Tapes belong to threads: in a new thread only those are open that the function opens
    itself.

    The default graph is the caller's. If the function raises, it is called again in the caller's thread and raises
    there, because it may need something that belongs to that thread.
    """
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    answers: list[T] = []

    def call() -> None:
        try:
            if graph is None:
                answers.append(function(*arguments))
            else:
                with graph.as_default():
                    answers.append(function(*arguments))
        # The user's function may raise anything; it is called again where the exception can be handled.
        except Exception:
            return

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if answers:
        return answers[0]
    with record.stop_recording():
        return function(*arguments)
