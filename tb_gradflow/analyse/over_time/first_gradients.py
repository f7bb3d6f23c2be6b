"""The gradients of the first recorded step of a run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tb_gradflow.analyse.over_time.unmoved import Piece
from tb_gradflow.record.schema import GRADIENT_STATISTICS

_MAX_ABS = GRADIENT_STATISTICS.index("max_abs")


def first_gradients_of(beginning: Piece) -> Mapping[str, float]:
    """By the name of a variable, the largest element of its gradient; without those that got none, or one that is not
    finite."""
    numbers = beginning.gradients()[0]
    found: dict[str, float] = {}
    for entry in beginning.trace.variable_gradients:
        if entry.row is None or entry.row >= len(numbers) or not np.isfinite(numbers[entry.row, _MAX_ABS]):
            continue
        name = beginning.trace.variables[entry.variable].name
        found[name] = max(found.get(name, 0.0), float(numbers[entry.row, _MAX_ABS]))
    return found
