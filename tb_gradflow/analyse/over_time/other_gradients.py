"""How large the gradients of other recorded steps were: of the first one, and of those before a step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import numpy as np
import numpy.typing as npt

from tb_gradflow.analyse.over_time.unmoved import Piece
from tb_gradflow.record.schema import GRADIENT_STATISTICS, Trace

_MAX_ABS = GRADIENT_STATISTICS.index("max_abs")


def first_gradients_of(beginning: Piece) -> Mapping[str, float]:
    """By the name of a variable, the largest element of its gradient; without those that got none, or one that is not
    finite."""
    return _largest(beginning.trace, beginning.gradients()[0])


def gradients_before(backwards: Iterable[Piece]) -> Mapping[str, tuple[float, int]]:
    """By the name of a variable, the largest element of its gradients in the recorded steps before the one in question,
    and in which. `backwards` are the recorded steps up to that one, the latest piece first."""
    found: dict[str, tuple[float, int]] = {}
    for step, largest in islice(_backwards(backwards), 1, None):
        for name, size in largest.items():
            if size > found.get(name, (0.0, -1))[0]:
                found[name] = size, step
    return found


def _backwards(pieces: Iterable[Piece]) -> Iterator[tuple[int, Mapping[str, float]]]:
    for piece in pieces:
        numbers = piece.gradients()
        for place in range(len(piece.steps) - 1, -1, -1):
            yield piece.steps[place], _largest(piece.trace, numbers[place])


def _largest(trace: Trace, numbers: npt.NDArray[np.float32]) -> dict[str, float]:
    found: dict[str, float] = {}
    for entry in trace.variable_gradients:
        if entry.row is None or entry.row >= len(numbers) or not np.isfinite(numbers[entry.row, _MAX_ABS]):
            continue
        name = trace.variables[entry.variable].name
        found[name] = max(found.get(name, 0.0), float(numbers[entry.row, _MAX_ABS]))
    return found
