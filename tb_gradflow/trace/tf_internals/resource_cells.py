"""Anonymous resources that hold a tensor: between steps, or on its way out of a nested function's graph.

A graph cannot return a tensor of another graph, so the nested function writes the tensor to a resource that the step
reads afterwards. A `tf.Variable` would do, but `tf.function` forbids creating one when it traces again.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.ops import cond_v2

# TensorFlow's name for an anonymous resource, which is freed with its last handle.
ANONYMOUS = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"


# The kind of graph in which TensorFlow builds the gradient of a branch.
_OfBranch = cond_v2._CondGradFuncGraph


class Sink:
    """Holds a float32 tensor of one shape; NaN until it is written.

    Attributes:
        shape: The shape of the tensor.
    """

    def __init__(self, shape: Any) -> None:
        self.shape = shape
        with tf.init_scope():
            self._handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=shape, shared_name=ANONYMOUS)
        with tf.init_scope():
            self._empty()

    def write(self, tensor: Any) -> Any:
        """Called in the nested function: stores the tensor for the step; returns the op that does so."""
        handle = _handle_in(tf.compat.v1.get_default_graph(), self._handle)
        return tf.raw_ops.AssignVariableOp(resource=handle, value=tensor)

    def take(self) -> Any:
        """Called in the step after the function: the tensor that was written in this step. Leaves the cell empty for
        the next step.
        """
        value = tf.raw_ops.ReadVariableOp(resource=self._handle, dtype=tf.float32)
        self._empty()
        return tf.ensure_shape(value, self.shape)

    @property
    def is_passed_on(self) -> bool:
        """Called in the step before any read: whether a function that writes may be called. TensorFlow traces a
        function twice if it creates variables, and calls the second trace.
        """
        graph = tf.compat.v1.get_default_graph()
        return any(inner.consumers() for outer, inner in getattr(graph, "captures", ()) if outer is self._handle)

    def _empty(self) -> None:
        tf.raw_ops.AssignVariableOp(resource=self._handle, value=tf.fill(self.shape, float("nan")))


def brought_home(tensor: Any, step: Any) -> Any:
    """A tensor of a nested function's graph as a sink that the step can read; any other as it is."""
    if not tf.is_symbolic_tensor(tensor) or tensor.graph is step:
        return tensor
    sink = Sink(tensor.shape)
    sink.write(tensor)
    return sink


def _handle_in(graph: Any, handle: Any) -> Any:
    """The gradient of a branch captures outside tensors from the graph around it, and from nowhere else."""
    return graph.capture(_handle_in(graph.outer_graph, handle) if isinstance(graph, _OfBranch) else handle)
