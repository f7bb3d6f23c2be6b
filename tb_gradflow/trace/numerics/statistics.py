"""Statistics of a tensor, by the names and in the order of `record.schema`.

Each tensor's statistics are one call of a shared function that is not inlined: a graph with twenty more ops for each of
a thousand tensors takes a minute to optimise, while a call costs ten microseconds. What is rare is left to NumPy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tb_gradflow.record.schema import GRADIENT_STATISTICS, VARIABLE_STATISTICS
from tb_gradflow.trace.numerics import arrays
from tb_gradflow.trace.numerics.later import SAFE, shared_function, statistics, wide

GRADIENT_COLUMNS = len(GRADIENT_STATISTICS)
VARIABLE_COLUMNS = len(VARIABLE_STATISTICS)


def gradient_statistics(gradient: Any) -> Any:
    """float32 `[6]`: norm, largest and mean magnitude over the finite elements, fraction of exact zeros, and the
    numbers of NaN and of infinite elements. An `IndexedSlices` counts as the dense tensor that it represents.
    """
    return shared_call(statistics, dense(gradient))


def gradient_cosine(one: Any, other: Any) -> Any:
    """float32 scalar: the cosine of the angle between two gradients of one variable; NaN if one of them is zero or not
    finite.
    """
    return shared_call(_cosine, dense(one), dense(other))


def variable_statistics(now: Any, before: Any) -> Any:
    """float32 `[4]`: norms of a variable's value and of its change, and the numbers of elements that were not finite
    before and after; `before` is None if unknown.
    """
    if before is None:
        norm, _, _, nonfinite = tf.unstack(shared_call(_variable_columns, now, now))
        return tf.stack([norm, float("nan"), float("nan"), nonfinite])
    return shared_call(_variable_columns, now, before)


def movement_statistics(
    gradient: Any, before: Any, now: Any, remembers: Any, rate: Any, *, is_proportional: bool, is_scaled: bool = False
) -> Any:
    """float32 `[6]`, in the order of `MOVEMENT_STATISTICS`. `remembers` is `None` if the optimizer has no memory, and
    `rate` is `None` if unknown; steps are in proportion to the gradient, or as long as the rate. The length of a step
    is unknown for a gradient that is still scaled.
    """
    if remembers is None:
        remembers = tf.zeros(tf.shape(now), tf.bool)
    known = tf.constant(float("nan")) if rate is None else rate
    function = _movement_of_unknown_length if is_scaled else _proportional_movement if is_proportional else _movement
    return shared_call(function, dense(gradient), before, now, remembers, known)


def _proportional_movement(gradient: Any, before: Any, now: Any, remembers: Any, rate: Any) -> Any:
    return _movement(gradient, before, now, remembers, rate, tf.cast(tf.abs(gradient), tf.float32))


def _movement_of_unknown_length(gradient: Any, before: Any, now: Any, remembers: Any, rate: Any) -> Any:
    return _movement(gradient, before, now, remembers, rate, float("inf"))


def _movement(gradient: Any, before: Any, now: Any, remembers: Any, rate: Any, per_rate: Any = 1.0) -> Any:
    zero = tf.equal(gradient, tf.zeros_like(gradient))
    changed = tf.not_equal(now, before)
    moved = zero & changed
    unmoved = ~zero & ~changed & tf.math.is_finite(tf.cast(gradient, tf.float32))
    # Half the distance to the next number: smaller changes are rounded away.
    spacing = tf.abs(tf.cast(before, tf.float32)) * (epsilon_of(before.dtype) / 2)
    rounded = unmoved & (rate > 0) & (rate * per_rate < spacing)
    counts = [_count(mask) for mask in (zero, moved, moved & remembers, unmoved, rounded)]
    return tf.stack([*counts, rate])


def dense(gradient: Any) -> Any:
    """A gradient as a tensor: an `IndexedSlices` represents one."""
    return tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient


def epsilon_of(dtype: Any) -> float:
    return 2.0**-7 if dtype == tf.bfloat16 else float(np.finfo(dtype.as_numpy_dtype).eps)


def shared_call(function: Callable[..., Any], *tensors: Any) -> Any:
    """A call of `function`, compiled once for all tensors of these types."""
    # TensorFlow's optimizer would specialise a call whose argument turns out to be constant (the gradient of a mean
    # is), and inside a nested function the specialised copy is then not found (seen with TensorFlow 2.21). This is
    # the only op that is never folded into a constant.
    opaque = [tf.raw_ops.PlaceholderWithDefault(input=tensor, shape=tensor.shape) for tensor in tensors]
    return _compiled(function, *(tensor.dtype for tensor in tensors))(*opaque)


@functools.cache
def _compiled(function: Callable[..., Any], *dtypes: Any) -> Any:
    return shared_function(function, *(tf.TensorSpec(None, dtype) for dtype in dtypes))


def _cosine(one: Any, other: Any) -> Any:
    directions = []
    for each in (one, other):
        if each.dtype.is_complex:
            each = tf.stack([tf.math.real(each), tf.math.imag(each)])
        flat = tf.reshape(wide(each), [-1])
        scaled = tf.math.divide_no_nan(flat, _largest(tf.abs(flat)))
        directions.append(tf.cast(scaled / tf.sqrt(tf.reduce_sum(tf.square(scaled))), tf.float32))
    return tf.reduce_sum(directions[0] * directions[1])


def _variable_columns(now: Any, before: Any) -> Any:
    value, change = _magnitude(now), _magnitude(now - before)
    norms = [tf.sqrt(2 * tf.nn.l2_loss(value)), tf.sqrt(2 * tf.nn.l2_loss(change))]

    def plain() -> Any:
        return tf.cast(tf.stack([*norms, tf.zeros_like(norms[0]), tf.zeros_like(norms[0])]), tf.float32)

    def exact() -> Any:
        columns = tf.numpy_function(_exact_columns, [now, now - before, before], tf.float32, stateful=False)
        return tf.ensure_shape(columns, [VARIABLE_COLUMNS])

    # Anything that is not finite before or after shows in the change, or in the value.
    finite = tf.math.is_finite(norms[0]) & tf.math.is_finite(norms[1])
    return tf.cond(finite & _is_safe(_largest(value)) & _is_safe(_largest(change)), plain, exact)


def _exact_columns(now: Any, change: Any, before: Any) -> Any:
    return np.array(arrays.variable_columns(*map(arrays.flat, (now, change, before))), np.float32)


def _largest(magnitude: Any) -> Any:
    return tf.maximum(tf.reduce_max(magnitude), tf.zeros([], magnitude.dtype))  # -inf if there are no elements


def _is_safe(largest: Any) -> Any:
    low, high = (tf.constant(limit, largest.dtype) for limit in SAFE)
    return tf.equal(largest, tf.zeros_like(largest)) | ((largest > low) & (largest < high))


def _magnitude(tensor: Any) -> Any:
    return tf.reshape(wide(tf.abs(tensor)), [-1])


def _count(mask: Any) -> Any:
    return tf.reduce_sum(tf.cast(mask, tf.float32))
