"""Names of the recorder's own ops in the graph of a step.

TensorFlow's graph optimizer sorts the inputs of a sum by their names, and so the order in which three or more terms are
added depends on them. The names of the user's ops must therefore be those that they have without the recorder: it may
not take `concat_9`, because the user's next one would be called `concat_10`, which comes before `concat_9`.

The optimizer puts a called function and the body of a loop in the place of the call and of the loop, and the names of
their ops then contain those of the functions around them: in Keras's training function, which calls the step, an op of
a loop's gradient is `StatefulPartitionedCall/…/while_grad/body/…`, and the sum so far that it adds to is
`StatefulPartitionedCall/…/while_grad/StatefulPartitionedCall/…`. Without the outer call the first comes before the
second. So the recorder calls the step in the same way (see `keras_call`).
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
