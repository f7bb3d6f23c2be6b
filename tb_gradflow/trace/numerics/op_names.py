"""Names of the recorder's own ops in the graph of a step.

TensorFlow's graph optimizer sorts the inputs of a sum by their names, and so the order in which three or more terms are
added depends on them. The names of the user's ops must therefore be those that they have without the recorder: it may
not take `concat_9`, because the user's next one would be called `concat_10`, which comes before `concat_9`.
"""

from __future__ import annotations

import contextlib
from typing import Any

import tensorflow as tf


def own_names() -> contextlib.AbstractContextManager[Any]:
    """While the context is open, ops that are created take no names from the user's."""
    if tf.executing_eagerly():
        return contextlib.nullcontext()
    # The slash makes it absolute, and the same one every time.
    scope: contextlib.AbstractContextManager[Any] = tf.name_scope("tb_gradflow/")
    return scope
