"""Undoes what a loss scale did to gradients and losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.statistics import GRADIENT_COLUMNS


def unscaled(rows: Sequence[Any], scale: Any) -> Any:
    """float32 `[rows, 6]`: statistics of gradients as they would be without the loss scale."""
    if not rows:
        return tf.zeros([0, GRADIENT_COLUMNS])
    stacked = tf.stack(rows)
    if scale is None:
        return stacked
    # Fractions and counts do not scale.
    divisor = tf.stack([tf.cast(scale, tf.float32)] * 3 + [tf.ones([])] * (GRADIENT_COLUMNS - 3))
    return stacked / divisor


def total(values: Sequence[Any], scale: Any) -> Any:
    """float32 scalar: their sum, unscaled; NaN if there are none."""
    parts = [tf.reduce_sum(tf.cast(value, tf.float32)) for value in values]
    added = tf.add_n(parts) if parts else tf.constant(float("nan"))
    return added if scale is None else added / tf.cast(scale, tf.float32)
