"""Calls to gradient functions of the user's own that the user's tapes are not to see.

`record.stop_recording` would stop the tapes, too, that such a function opens itself, and those answer None then: a
gradient that recomputes its forward pass, or solves for a fixed point, would look as if it had none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf
from tensorflow.python.eager import record

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds. A function that waits for something that the caller's thread holds, as TensorFlow's lock of a function that
is being traced, would wait for ever."""


def untaped(function: Callable[..., T], *arguments: Any) -> T:
    """What the function returns. Tapes belong to threads: in another one none is open but those it opens itself.

    The default graph is the caller's. Raises whatever the function raises here, in the caller's thread, as it may need
    something that belongs to the thread as well.
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
        # The user's function is foreign code, and may raise anything; it is called again, where that is heard.
        except Exception:
            return

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if answers:
        return answers[0]
    with record.stop_recording():
        return function(*arguments)
