"""Losses that an optimizer has multiplied by a scale, and their gradients without it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from tb_gradflow.trace.numerics.statistics import GRADIENT_COLUMNS

# A scaled loss passes through these if it is divided by a number of batches, or if another term is added to it.
_HANDING_ON = frozenset(
    {"Identity", "Cast", "Reshape", "Squeeze", "Neg", "Mul", "RealDiv", "AddV2", "Add", "AddN", "Sub", "Sum", "Mean"}
)
_FAR = 64

SCALED = 3
"""How many of the statistics of a gradient, the first ones, are in proportion to it."""


class ScaledLosses:
    """Scaled losses of the step's graphs, with a value for each."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def add(self, symbol: Any, known: Any) -> None:
        """A tensor of a graph, with its value."""
        self._known[symbol.ref()] = known

    def behind(self, symbols: Iterable[Any]) -> Any:
        """The value of the scaled loss that one of these tensors is, or is computed from; None if there is none."""
        pending, seen = list(symbols), set[Any]()
        while self._known and pending and len(seen) < _FAR:
            symbol = pending.pop(0)
            key = symbol.ref()
            if key in self._known:
                return self._known[key]
            if key not in seen and symbol.op.type in _HANDING_ON:
                seen.add(key)
                pending.extend(symbol.op.inputs)
        return None


def unscaled(rows: Sequence[Any], scale: Any) -> Any:
    """float32 `[rows, 6]`: statistics of the gradients without the loss scale."""
    if not rows:
        return tf.zeros([0, GRADIENT_COLUMNS])
    stacked = tf.stack(rows)
    if scale is None:
        return stacked
    # Fractions and counts do not scale.
    divisor = tf.stack([tf.cast(scale, tf.float32)] * SCALED + [tf.ones([])] * (GRADIENT_COLUMNS - SCALED))
    return stacked / divisor


def total(values: Sequence[Any], scale: Any) -> Any:
    """float32 scalar: the sum of the losses, unscaled; NaN if there are none."""
    parts = [tf.reduce_sum(tf.cast(value, tf.float32)) for value in values]
    added = tf.add_n(parts) if parts else tf.constant(float("nan"))
    return added if scale is None else added / tf.cast(scale, tf.float32)
