"""Statistics of forward values, and the batch rows in which they are not finite.

They are measured only in steps that are rolled back: measuring a value keeps ops separate that TensorFlow may merge,
and these round differently (see `fusion`).
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tb_gradflow.record.values import MOST_ROWS
from tb_gradflow.trace.numerics.later import wide
from tb_gradflow.trace.numerics.statistics import shared_call

VALUE_COLUMNS = ("smallest", "largest", "zeros", "negative", "nan_count", "inf_count", "negative_inf_count")

PLACE_COLUMNS = MOST_ROWS + 1

MOST_AXES = 8


def value_statistics(tensor: Any) -> Any:
    """float32 `[7]`, in the order of `VALUE_COLUMNS`. Counts of more than sixteen million elements are rounded."""
    return shared_call(_value_columns, tensor)


def size_of(tensor: Any) -> Any:
    """int32 `[9]`: the number of axes, then their lengths, -1 if there is no such axis."""
    shape = tf.shape(tensor)[:MOST_AXES]
    rank = tf.size(shape)
    return tf.concat([[rank], shape, tf.fill([MOST_AXES - rank], -1)], 0)


def bad_rows(tensor: Any) -> Any:
    """int32 `[33]`: along the first axis, the number of positions at which an element is not finite, and the first of
    them, -1 if there are no more.
    """
    return shared_call(_bad_rows, tensor)


def bad_columns(tensor: Any) -> Any:
    """The same along the last axis."""
    return shared_call(_bad_columns, tensor)


def _value_columns(tensor: Any) -> Any:
    flat = wide(tf.reshape(tensor, [-1]))
    finite, zero = tf.math.is_finite(flat), tf.zeros([], flat.dtype)
    any_finite = tf.reduce_any(finite)
    smallest = tf.reduce_min(tf.where(finite, flat, tf.fill(tf.shape(flat), flat.dtype.max)))
    largest = tf.reduce_max(tf.where(finite, flat, tf.fill(tf.shape(flat), flat.dtype.min)))
    infinite = tf.math.is_inf(flat)
    masks = (flat == zero, flat < zero, tf.math.is_nan(flat), infinite & (flat > zero), infinite & (flat < zero))
    counts = [tf.reduce_sum(tf.cast(mask, tf.float32)) for mask in masks]
    ends = [tf.cast(tf.where(any_finite, end, zero), tf.float32) for end in (smallest, largest)]
    return tf.stack([*ends, *counts])


def _bad_rows(tensor: Any) -> Any:
    rows = tf.shape(tensor)[0]
    return _places(tf.reduce_any(~_is_finite(tf.reshape(tensor, tf.stack([rows, _rest(tensor, rows)]))), axis=1))


def _bad_columns(tensor: Any) -> Any:
    columns = tf.shape(tensor)[-1]
    return _places(tf.reduce_any(~_is_finite(tf.reshape(tensor, tf.stack([_rest(tensor, columns), columns]))), axis=0))


def _rest(tensor: Any, size: Any) -> Any:
    return tf.size(tensor) // tf.maximum(size, 1)


def _is_finite(tensor: Any) -> Any:
    return tf.math.is_finite(wide(tensor))


def _places(bad: Any) -> Any:
    # Without a sort or a length that is known only at run time: XLA compiles this once for each tensor.
    count, number = tf.reduce_sum(tf.cast(bad, tf.int32)), tf.range(MOST_ROWS)[:, tf.newaxis]
    order = tf.cumsum(tf.cast(bad, tf.int32)) - 1
    chosen = bad[tf.newaxis] & (order[tf.newaxis] == number)
    places = tf.reduce_sum(tf.where(chosen, tf.range(tf.size(bad))[tf.newaxis], 0), axis=1)
    return tf.concat([[count], tf.where(tf.range(MOST_ROWS) < count, places, -1)], 0)
