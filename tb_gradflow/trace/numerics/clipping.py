"""How much a clip of gradients cuts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tb_gradflow.record.schema import CLIP_STATISTICS, GRADIENT_STATISTICS, LOSS_SCALE_STATISTICS
from tb_gradflow.trace.numerics.later import sums, wide

Array = npt.NDArray[np.float32]

_NORM, _NAN, _INF = (GRADIENT_STATISTICS.index(name) for name in ("norm", "nan_count", "inf_count"))


def cut(before: Array, after: Array | None, limit: float | None = None, divisor: float = 1.0) -> list[float]:
    """The `CLIP_STATISTICS` of several gradients from their statistics, `[n, 6]`, before a clip and after it; `None`:
    what is left has at most a norm of `limit`. They are divided by a number before the clip."""
    whole = _norm(before) / divisor
    left = min(whole, limit) if after is None and limit is not None and whole == whole else _norm(after) / divisor
    numbers = {"before": whole, "after": left}
    is_known = bool(np.isfinite([whole, left]).all())
    return [(numbers[name] if is_known else float("nan")) if name in numbers else 0.0 for name in CLIP_STATISTICS]


def _norm(rows: Array | None) -> float:
    """NaN if one is not finite, or not known."""
    if rows is None or (rows[:, [_NAN, _INF]] > 0).any():
        return float("nan")
    return float(np.linalg.norm(rows[:, _NORM].astype(np.float64)))


def of_scale(scale: float, updates: float) -> list[float]:
    """The `LOSS_SCALE_STATISTICS`."""
    numbers = {"scale": scale, "updates": updates}
    return [numbers.get(name, 0.0) for name in LOSS_SCALE_STATISTICS]


@functools.cache
def clipped_to(limit: float) -> Callable[[Any], Any]:
    """Computes float32 `[6]`, in the order of `GRADIENT_STATISTICS`, of which only the norm counts: that of a tensor
    whose elements are clipped to `limit`."""

    def statistics(tensor: Any) -> Any:
        known = wide(tensor)
        most = tf.constant(limit, known.dtype)
        halves, largest, *_, lost = tf.unstack(sums(tf.maximum(tf.minimum(known, most), -most)))
        zero = tf.zeros([])
        return tf.stack([largest * tf.sqrt(2 * halves), zero, zero, zero, tf.abs(lost), zero])

    return statistics
