"""Statistics of values that a run has returned, as `numerics.statistics` computes them in a step."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tb_gradflow.record.schema import VARIABLE_STATISTICS
from tb_gradflow.trace.graph_v1.gradients_v1 import norms_of, statistics_of

Array = npt.NDArray[Any]

UNKNOWN = [float("nan")] * len(VARIABLE_STATISTICS)


def sparse_statistics(values: Array, rows: Array, size: int | None) -> list[float]:
    """The statistics of the dense gradient that has these rows, of which some may be given several times.

    Args:
        values: The rows, in any shape.
        rows: Their positions.
        size: The number of elements of the dense gradient; `None` if it is not known.
    """
    distinct, places = np.unique(rows, return_inverse=True)
    flat = np.reshape(values, (np.size(rows), -1)) if np.size(rows) else np.zeros((0, 0), np.asarray(values).dtype)
    total = np.zeros((len(distinct), flat.shape[1]), flat.dtype)
    np.add.at(total, np.ravel(places), flat)
    found = statistics_of(total)
    missing = max((size or total.size) - total.size, 0)
    if missing:
        norm, largest, mean, zeros, nan_count, inf_count = found
        finite = total.size - nan_count - inf_count
        whole = total.size + missing
        mean *= finite / max(finite + missing, 1)
        return [norm, largest, mean, (zeros * total.size + missing) / whole, nan_count, inf_count]
    return found


def change_statistics(before: Array | None, after: Array | None) -> list[float]:
    """The statistics of `record.schema.VARIABLE_STATISTICS` for a variable that a step may have changed."""
    if after is None:
        return UNKNOWN
    norm, _, _, nonfinite_after = norms_of(after)
    if before is None or np.shape(before) != np.shape(after) or np.isnan(norm):
        return [norm, float("nan"), float("nan"), nonfinite_after]
    with np.errstate(all="ignore"):
        # In the variable's own precision, as the step computes it.
        change = np.abs(np.asarray(after - before)).astype(np.float64)
    moved = float(np.linalg.norm(change[np.isfinite(change)]))
    return [norm, moved, norms_of(before)[2], nonfinite_after]
