"""Room for a tensor between steps, and between the functions of one."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tb_gradflow.trace.sink import ANONYMOUS


class Slot:
    """Room for a tensor, which takes no memory until it is written. Its shape may be unknown.

    A `tf.Variable` would have a value from the start, and `tf.function` forbids to make one while it traces again.
    """

    def __init__(self, dtype: Any, shape: Any) -> None:
        self._dtype = dtype
        with tf.init_scope():
            self._handle = tf.raw_ops.VarHandleOp(dtype=dtype, shape=shape, shared_name=ANONYMOUS)

    def write(self, tensor: Any) -> None:
        tf.raw_ops.AssignVariableOp(resource=self._handle, value=tensor)

    def read(self) -> Any:
        return tf.raw_ops.ReadVariableOp(resource=self._handle, dtype=self._dtype)
