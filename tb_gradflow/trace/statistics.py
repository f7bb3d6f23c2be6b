"""Statistics of a tensor in plain TensorFlow ops, the same under XLA, on a GPU and on replicas.

Their names and order are those of `record.schema`.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tb_gradflow.record.schema import GRADIENT_STATISTICS, VARIABLE_STATISTICS

GRADIENT_COLUMNS = len(GRADIENT_STATISTICS)
VARIABLE_COLUMNS = len(VARIABLE_STATISTICS)


def gradient_statistics(gradient: Any, scale: Any = None) -> Any:
    """float32 `[6]`: norm, largest and mean magnitude over the finite elements, fraction of exact zeros, and the
    numbers of NaN and of infinite elements.

    `scale` is what the loss was multiplied with before it was differentiated (loss scaling); magnitudes are
    divided by it. An `IndexedSlices` counts as the dense tensor that it stands for.
    """
    values = _flat(gradient)
    magnitude = tf.abs(values)
    finite = tf.where(tf.math.is_finite(magnitude), magnitude, tf.zeros_like(magnitude))
    largest, norm, total = _scaled_sums(finite)
    count = tf.cast(tf.maximum(tf.size(values), 1), values.dtype)
    nan_count = _count(tf.math.is_nan(magnitude), values.dtype)
    inf_count = _count(tf.math.is_inf(magnitude), values.dtype)
    mean = total / tf.maximum(count - nan_count - inf_count, tf.ones_like(count))
    zeros = _count(tf.equal(magnitude, tf.zeros_like(magnitude)), values.dtype) / count
    magnitudes = tf.stack([norm, largest, mean])
    if scale is not None:
        magnitudes = magnitudes / tf.cast(scale, magnitudes.dtype)
    return tf.cast(tf.concat([magnitudes, tf.stack([zeros, nan_count, inf_count])], 0), tf.float32)


def l2_norm(tensor: Any) -> Any:
    """float32 scalar: L2 norm of the finite elements; NaN for a tensor that is not floating."""
    if not (tensor.dtype.is_floating or tensor.dtype.is_complex):
        return tf.constant(float("nan"), tf.float32)
    magnitude = tf.abs(_flat(tensor))
    finite = tf.where(tf.math.is_finite(magnitude), magnitude, tf.zeros_like(magnitude))
    return tf.cast(_scaled_sums(finite)[1], tf.float32)


def _scaled_sums(magnitude: Any) -> tuple[Any, Any, Any]:
    """The largest element, the L2 norm and the sum.

    Squaring first would flush every element below 1e-19 to zero, and gradients that small are what we are here
    to see. Scale by the largest, as BLAS nrm2 does.
    """
    largest = tf.maximum(tf.reduce_max(magnitude), tf.zeros([], magnitude.dtype))  # -inf if there is no element
    scaled = tf.math.divide_no_nan(magnitude, largest)
    return largest, largest * tf.sqrt(tf.reduce_sum(tf.square(scaled))), largest * tf.reduce_sum(scaled)


def _flat(tensor: Any) -> Any:
    """One dimension, as float32, or as float64 where the tensor has that much: half precision would lose its own
    squares."""
    if isinstance(tensor, tf.IndexedSlices):
        tensor = tf.convert_to_tensor(tensor)
    if tensor.dtype.is_complex:
        tensor = tf.abs(tensor)
    if tensor.dtype not in (tf.float32, tf.float64):
        tensor = tf.cast(tensor, tf.float32)
    return tf.reshape(tensor, [-1])


def _count(mask: Any, dtype: Any) -> Any:
    return tf.reduce_sum(tf.cast(mask, dtype))
