"""Keeps the reads and writes of a variable in order, whatever TensorFlow's graph optimizers do.

TensorFlow orders them with control edges, which it adds at the end of tracing a function. Its dependency optimizer
removes such an edge if another path leads from the read to the write. It also removes an `IdentityN` that only passes
values on, and with it the paths through it. Keras passes all gradients of a step through one `IdentityN`, so each
gradient seems to have a path to every write. In a critic with a gradient penalty this was the only other path: in one
of four runs, a recorded step read weights that had already been written. The plain step has the same race, but a
smaller window for it.

A path that survives leads through a `ControlTrigger`, which does nothing, and which no optimizer removes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import auto_control_deps_utils

_TRIGGER = "ControlTrigger"


def keep_in_order(graph: Any) -> None:
    """Makes every write of a variable in a function's graph wait for the reads that were traced before it, and every
    read for the write before it, in addition to TensorFlow's own control edges.
    """
    reads: dict[Any, list[Any]] = defaultdict(list)
    last_write: dict[Any, Any] = {}
    for op in graph.get_operations():
        if not _uses_variables(op):
            continue
        read, written = auto_control_deps_utils.get_read_write_resource_inputs(op)
        before = []
        for handle in read:
            reads[handle.ref()].append(op)
            before.append(last_write.get(handle.ref()))
        for handle in written:
            before += [*reads.pop(handle.ref(), ()), last_write.get(handle.ref())]
            last_write[handle.ref()] = op
        _let_wait(op, {id(each): each for each in before if each is not None and each is not op}.values())


def _uses_variables(op: Any) -> bool:
    # Ops in a loop of TensorFlow 1 cannot wait for ops outside of it.
    return any(tensor.dtype == tf.resource for tensor in op.inputs) and op._get_control_flow_context() is None


def _let_wait(op: Any, before: Collection[Any]) -> None:
    if before and not any(each.type == _TRIGGER for each in op.control_inputs):
        with op.graph.as_default(), tf.control_dependencies(None), tf.control_dependencies(list(before)):
            op._add_control_input(tf.raw_ops.ControlTrigger())
