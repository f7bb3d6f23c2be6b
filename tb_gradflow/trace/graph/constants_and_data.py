"""The inputs of flat ops other than variables: the data of the step, and constants."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.analyse.graph.op_sets import SHAPE_ONLY
from tb_gradflow.record.schema import Constant, Given
from tb_gradflow.trace.graph.differentiable import shape_of
from tb_gradflow.trace.graph.flat_ops import FlatOp
from tb_gradflow.trace.graph.reach import influenced_by

# These create or fetch new values each time they run.
_FRESH = (
    *("Random", "StatelessRandom", "TruncatedNormal", "StatelessTruncated", "Multinomial", "StatelessMultinomial"),
    *("StatefulStandard", "StatefulUniform", "StatefulTruncated", "Rng", "PyFunc", "EagerPyFunc", "Iterator"),
)

# The input whose copies are their elements: TensorFlow uses Fill for constants of more than a thousand elements.
_COPIES = {"Identity": 0, "Cast": 0, "ExpandDims": 0, "Reshape": 0, "BroadcastTo": 0, "Fill": 1}

# The value of all their elements, whatever their inputs are.
_ALIKE = {"ZerosLike": 0.0, "OnesLike": 1.0}

_LARGEST_SHAPE = 8

_LARGEST = float(np.finfo(np.float32).max)


def given_data(ops: Sequence[FlatOp], users: Mapping[int, list[int]]) -> set[int]:
    """The ops whose value depends on data: on arguments or captured values of the step, random draws, or a table of
    numbers.

    Constants whose elements are all equal are not data: factors, limits, small numbers against division by zero.
    """
    sources = {index for index, op in enumerate(ops) if op.type not in SHAPE_ONLY and _is_source(op)}
    return influenced_by(ops, users, sources)


def constants_of(op: FlatOp, ops: Sequence[FlatOp]) -> tuple[Constant, ...]:
    """The inputs of an op that are floating constants with one value in all elements. Infinity is recorded as the
    largest float32.
    """
    found = []
    for item in op.inputs:
        value = _value(ops, item.ref.op)
        if value is not None:
            found.append(Constant(item.slot, max(-_LARGEST, min(_LARGEST, value))))
    return tuple(found)


def given_to(op: FlatOp, told: Collection[int]) -> tuple[Given, ...]:
    """The floating inputs of an op that are not recorded otherwise, by their number."""
    return tuple(
        Given(slot, shape_of(tensor))
        for slot, tensor in enumerate(op.op.inputs)
        if slot not in told and tensor.dtype.is_floating
    )


def exceeds_half(op: FlatOp, ops: Sequence[FlatOp]) -> bool:
    """Whether it multiplies, in half precision, by a constant that half precision cannot represent."""
    if op.type != "Mul" or op.tensors[0].dtype != tf.float16:
        return False
    return any(abs(constant.value) > tf.float16.max for constant in constants_of(op, ops))


def has_floor(op: FlatOp, ops: Sequence[FlatOp]) -> bool:
    """Whether it is a logarithm of a value that `tf.maximum` or `tf.clip_by_value` keeps above zero: that is finite."""
    given = [ops[item.ref.op] for item in op.inputs] if op.type == "Log" else []
    places = {"Maximum": (0, 1), "ClipByValue": (1,)}
    return any(
        constant.input in places.get(each.type, ()) and constant.value > 0
        for each in given
        for constant in constants_of(each, ops)
    )


def _is_source(op: FlatOp) -> bool:
    if op.type.startswith(_FRESH) or op.type == "Placeholder":
        return True
    if op.type == "Const":
        return _is_table(op.op)
    listed = {item.slot for item in op.inputs}
    # A tensor that no flat op produces comes from outside of the step.
    return any(
        slot not in listed and tensor.dtype not in (tf.resource, tf.variant) for slot, tensor in enumerate(op.op.inputs)
    )


def _value(ops: Sequence[FlatOp], index: int) -> float | None:
    """The one value of all elements of a floating constant, also of integers that were cast; None if it is not one."""
    if not any(tensor.dtype.is_floating for tensor in ops[index].tensors[:1]):
        return None
    while (slot := _COPIES.get(ops[index].type)) is not None:
        given = next((item.ref.op for item in ops[index].inputs if item.slot == slot), None)
        if given is None:
            return None
        index = given
    if ops[index].type in _ALIKE:
        return _ALIKE[ops[index].type]
    if ops[index].type != "Const":
        return None
    value = _elements(ops[index].op)
    return None if value is None or np.isnan(value) else value


def _is_table(constant: Any) -> bool:
    """Whether a constant is used in arithmetic: the few integers of an axis or a shape are not."""
    kind = tf.dtypes.as_dtype(constant.get_attr("dtype"))
    size = constant.outputs[0].shape.num_elements() or 0
    return (kind.is_floating or size > _LARGEST_SHAPE) and _elements(constant) is None


def _elements(constant: Any) -> float | None:
    """The one value of all elements of a `Const`, 0 if it has no elements; None if they differ."""
    proto = constant.get_attr("value")
    size = int(np.prod([each.size for each in proto.tensor_shape.dim], dtype=np.int64))
    kind = tf.dtypes.as_dtype(proto.dtype)
    if size == 0 or not (kind.is_floating or kind.is_integer or kind.is_bool):
        return 0.0
    values = tf.make_ndarray(proto).astype(np.float64).ravel()
    return float(values[0]) if np.array_equal(values, np.broadcast_to(values[0], size), equal_nan=True) else None
