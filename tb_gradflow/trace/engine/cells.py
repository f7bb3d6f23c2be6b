"""Places where a compiled function leaves tensors for Python to read after it.

A function that returned them would have more results than the user's, and TensorFlow would name, and so order, what
loops return differently; a function without results is even optimised differently. So they leave through resources
that are known by name, which are no arguments either.
"""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import node_def_pb2

from tb_gradflow.trace.engine.definitions import Definition

_NUMBERS = itertools.count()

_UNKNOWN = tf.TensorShape(None)


class Cell:
    """Holds a tensor from the time a function writes it until it is taken.

    Args:
        dtype: Its type.
        device: Where the function computes it, and where it is kept.
    """

    def __init__(self, dtype: Any, device: str = "/device:CPU:0") -> None:
        self._dtype = dtype
        self._device = device
        self._name = f"tb_gradflow_cell_{next(_NUMBERS)}"
        self._handle: Any = None
        weakref.finalize(self, _freed, self._name, dtype, device).atexit = False

    def put(self, definition: Definition, name: str, value: str) -> None:
        """A function writes a value here, by a node of this name."""
        handle = self.handle(f"{name}/cell")
        write = node_def_pb2.NodeDef(name=name, op="AssignVariableOp", device=self._device)
        write.input.extend([f"{handle.name}:resource:0", value])
        write.attr["dtype"].type = self._dtype.as_datatype_enum
        definition.proto.node_def.extend((handle, write))
        definition.run_always(name)

    def reading(self, name: str) -> tuple[node_def_pb2.NodeDef, node_def_pb2.NodeDef]:
        """Two nodes of a function's definition, of this name and below it: the value of the second is what is here."""
        handle = self.handle(f"{name}/cell")
        read = node_def_pb2.NodeDef(name=name, op="ReadVariableOp", device=self._device)
        read.input.append(f"{handle.name}:resource:0")
        read.attr["dtype"].type = self._dtype.as_datatype_enum
        return handle, read

    def handle(self, name: str) -> node_def_pb2.NodeDef:
        """A node of this name that gives the handle of the resource."""
        handle = node_def_pb2.NodeDef(name=name, op="VarHandleOp", device=self._device)
        handle.attr["dtype"].type = self._dtype.as_datatype_enum
        handle.attr["shape"].shape.unknown_rank = True
        handle.attr["shared_name"].s = self._name.encode()
        handle.attr["container"].s = b""
        return handle

    def write(self, tensor: Any) -> None:
        """In Python: puts a tensor here, for a function that reads it."""
        with tf.init_scope(), tf.device(self._device):
            tf.raw_ops.AssignVariableOp(resource=self.opened(), value=tensor)

    def written(self) -> Any:
        """The tensor that is here, in a graph that is open or in Python."""
        with tf.device(self._device):
            return tf.raw_ops.ReadVariableOp(resource=_handle(self._name, self._dtype), dtype=self._dtype)

    def take(self) -> Any:
        """After the function: the tensor; `None` if it was not written since the last time."""
        with tf.init_scope(), tf.device(self._device):
            handle = self.opened()
            # A read that fails would be told in the program's output.
            if not tf.raw_ops.VarIsInitializedOp(resource=handle):
                return None
            value = tf.raw_ops.ReadVariableOp(resource=handle, dtype=self._dtype)
            tf.raw_ops.DestroyResourceOp(resource=handle, ignore_lookup_error=True)
            return value

    def opened(self) -> Any:
        """In Python: the handle of the resource, which may be empty."""
        if self._handle is None:
            with tf.device(self._device):
                self._handle = _handle(self._name, self._dtype)
        return self._handle


def _handle(name: str, dtype: Any) -> Any:
    return tf.raw_ops.VarHandleOp(dtype=dtype, shape=_UNKNOWN, shared_name=name, container="")


def _freed(name: str, dtype: Any, device: str) -> None:
    with tf.init_scope(), tf.device(device):
        tf.raw_ops.DestroyResourceOp(resource=_handle(name, dtype), ignore_lookup_error=True)


_TOGETHER = 16
"""How many values an optional has. In each pass over a graph TensorFlow copies the types of all of them for each one: a
first call took 41 s with one optional of 2,000 values, and 1.5 s with optionals of optionals."""

_Kind = tuple[Any, Any]
"""Data type and shape of a tensor."""

_OPTIONAL: _Kind = (tf.variant, tf.TensorShape([]))


class Bundle:
    """Holds several tensors at once, without copying them: see `Cell`."""

    def __init__(self) -> None:
        self.cell = Cell(tf.variant)
        self._kinds: list[_Kind] = []

    def packed(self, tensors: Sequence[Any]) -> Any:
        """In the function: the tensor for the cell."""
        self._kinds = [(each.dtype, each.shape) for each in tensors]
        return _packed(tensors)

    def take(self) -> list[Any] | None:
        """After the function: the tensors; `None` if they were not written."""
        packed = self.cell.take()
        return None if packed is None else _unpacked(packed, self._kinds)


def _packed(tensors: Sequence[Any]) -> Any:
    if len(tensors) > _TOGETHER:
        tensors = [_packed(part) for part in _parts(tensors)]
    return tf.raw_ops.OptionalFromValue(components=list(tensors))


def _unpacked(packed: Any, kinds: Sequence[_Kind]) -> list[Any]:
    parts = _parts(kinds) if len(kinds) > _TOGETHER else ()
    types, shapes = zip(*([_OPTIONAL] * len(parts) or kinds), strict=True)
    values: list[Any] = tf.raw_ops.OptionalGetValue(
        optional=packed, output_types=list(types), output_shapes=list(shapes)
    )
    if not parts:
        return values
    return [tensor for value, part in zip(values, parts, strict=True) for tensor in _unpacked(value, part)]


def _parts(values: Sequence[Any]) -> list[Sequence[Any]]:
    size = math.ceil(len(values) / _TOGETHER)
    return [values[start : start + size] for start in range(0, len(values), size)]
