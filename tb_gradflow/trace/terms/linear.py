"""The ops through which a loss passes to its terms: sums, weights, means; and how each changes a weight on the way
back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tb_gradflow.analyse.graph.op_sets import MEANS, QUOTIENTS

PACKED = frozenset({"Pack"})
"""Stacked numbers, which a later op adds up."""

HANDING_ON = frozenset({"Identity", "Cast", "Neg", "Reshape", "Squeeze", "ExpandDims", "EnsureShape", "Snapshot"})
WEIGHTED = frozenset({"Mul"}) | QUOTIENTS

Actual = Callable[[Any], Any]
"""The tensor of the step that a tensor of the graph represents."""


def is_small(tensor: Any) -> bool:
    """Whether a tensor is a single number, or one number for each row of a batch."""
    return tensor.shape.rank is not None and tensor.shape.rank <= 1


def weight_of_input(op: Any, slot: int, weight: Any, actual: Actual) -> Any:
    """The weight of one input of an op in a loss, element by element, if `weight` is the weight of its output."""
    given = actual(op.inputs[slot])
    kind = op.type
    if kind in ("AddV2", "Add", "AddN"):
        return _as_given(weight, given)
    if kind == "Sub":
        return _as_given(weight if slot == 0 else -weight, given)
    if kind == "Neg":
        return -weight
    if kind == "Cast":
        return tf.cast(weight, given.dtype)
    if kind == "Pack":
        return weight[slot]
    if kind == "Mul":
        return _as_given(weight * actual(op.inputs[1 - slot]), given)
    if kind in QUOTIENTS:
        divisor = actual(op.inputs[1])
        divided = tf.math.divide_no_nan(weight, divisor) if kind == "DivNoNan" else weight / divisor
        return _as_given(divided, given)
    if kind in MEANS:
        # For a scalar, or for one number for each row: all of it.
        spread = tf.fill(tf.shape(given), tf.reshape(weight, []))
        return spread / tf.cast(tf.maximum(tf.size(given), 1), given.dtype) if kind == "Mean" else spread
    return tf.reshape(weight, tf.shape(given))


def _as_given(weight: Any, given: Any) -> Any:
    """The weight of an input that may have been broadcast."""
    if weight.shape.rank == 0 and given.shape.rank == 0:
        return weight
    if weight.shape.rank != 0 and given.shape.rank == 0:
        return tf.reduce_sum(weight)
    if weight.shape.is_fully_defined() and weight.shape == given.shape:
        return weight
    # One row may have been broadcast to all, and the number of rows is often not known while a step is traced.
    shape = tf.shape(given)
    rows = tf.broadcast_to(weight, tf.broadcast_dynamic_shape(tf.shape(weight), shape))
    along = tf.raw_ops.BroadcastGradientArgs(s0=shape, s1=tf.shape(rows)).r0
    return tf.reshape(tf.reduce_sum(rows, along), shape)
