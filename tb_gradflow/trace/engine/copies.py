"""Copies of the variables that a function is given, for one that changes nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import handle_data_util

from tb_gradflow.trace.engine.cells import Cell


def variables_given(function: Any) -> dict[int, Any]:
    """Which arguments of an `AtomicFunction` are variables, each with the type of its values."""
    return {
        number: tf.as_dtype(handle.shape_and_type[0].dtype)
        for number, each in enumerate(function.graph.inputs)
        if each.dtype == tf.resource
        and (handle := handle_data_util.get_resource_handle_data(each)).is_set
        and len(handle.shape_and_type) == 1
    }


def small_ones(function: Any, most: int) -> set[int]:
    """Those that have integers, or at most so many elements."""
    found = set()
    for number, dtype in variables_given(function).items():
        handle = handle_data_util.get_resource_handle_data(function.graph.inputs[number])
        count = tf.TensorShape(handle.shape_and_type[0].shape).num_elements()
        if not dtype.is_floating or (count is not None and count <= most):
            found.add(number)
    return found


def value_of(handle: Any, dtype: Any) -> Any:
    """The value of a variable; `None` if it has none."""
    if not tf.raw_ops.VarIsInitializedOp(resource=handle):
        return None
    return tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)


@contextlib.contextmanager
def copied(function: Any, args: Sequence[Any], values: Mapping[int, Any]) -> Iterator[dict[int, Cell]]:
    """Copies of the variables of an `AtomicFunction`, by the ids of their handles.

    Args:
        function: See above.
        args: Its arguments, with the handles of the variables themselves.
        values: The value that the copy of each variable has, by the number of its argument; none if there is none.
    """
    copies: dict[int, Cell] = {}
    try:
        for number, dtype in variables_given(function).items():
            if id(args[number]) not in copies:
                copies[id(args[number])] = copy = Cell(dtype, args[number].device)
                if values.get(number) is not None:
                    copy.write(values[number])
        yield copies
    finally:
        for each in copies.values():
            each.take()
