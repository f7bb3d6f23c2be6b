"""Checks whether the statistics of a chunk fit their trace; impossible values become "not measured"."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_gradflow.record.schema import COSINES_IN_ROW, GRADIENT_STATISTICS, VARIABLE_STATISTICS, Trace

Floats = npt.NDArray[np.float32]

_ZEROS = GRADIENT_STATISTICS.index("zero_fraction")
# A share of many elements may be rounded to a little more than one.
_WHOLE = 1.001
_MANY = 2**62
_COUNTS_OF_MOVEMENT = 5
"""Columns of `MOVEMENT_STATISTICS` before the learning rate."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The required sizes of a trace's statistics.

    Attributes:
        rows: The minimum number of rows of gradients.
        variables: The number of variables.
        targets: The number of losses.
        statistics: The rows with `GRADIENT_STATISTICS`.
        movements: The rows with `MOVEMENT_STATISTICS`.
        elements: The number of elements of the variable of each of these; infinity if it is not known.
    """

    rows: int
    variables: int
    targets: int
    statistics: npt.NDArray[np.intp]
    movements: npt.NDArray[np.intp]
    elements: npt.NDArray[np.float64]

    @classmethod
    def of(cls, trace: Trace) -> Sizes:
        listed = (
            trace.inputs,
            trace.variable_gradients,
            trace.tensor_gradients,
            trace.dropped_masks,
            trace.term_gradients,
            trace.term_tensors,
        )
        statistics = sorted({each.row for members in listed for each in members if each.row is not None})
        movements = [each.row for each in trace.movements]
        measured = (trace.terms, trace.ranges, trace.passed, trace.clips, trace.loss_scales)
        others = [each.row for members in measured for each in members]
        others += _last_rows_of_cosines(trace)
        return cls(
            1 + max((*statistics, *movements, *others), default=-1),
            len(trace.variables),
            len(trace.targets),
            np.array(statistics, np.intp),
            np.array(movements, np.intp),
            np.array([_elements(trace.variables[each.variable].shape) for each in trace.movements], np.float64),
        )


def _last_rows_of_cosines(trace: Trace) -> list[int]:
    terms = Counter((trace.terms[each.term].target, each.variable) for each in trace.term_gradients)
    pairs = [
        terms[each.target, each.variable] * (terms[each.target, each.variable] - 1) // 2 for each in trace.term_cosines
    ]
    rows = [max(1, -(-number // COSINES_IN_ROW)) for number in pairs]
    return [each.row + number - 1 for each, number in zip(trace.term_cosines, rows, strict=True)]


def gradients_that_fit(numbers: Floats, sizes: Sizes) -> tuple[Floats, str]:
    """`[steps, rows, statistics]` without impossible values, and the problem that was found; empty if there was
    none."""
    steps, rows, columns = numbers.shape
    if rows < sizes.rows:
        return unmeasured(steps, sizes.rows, columns), f"has {rows} rows, but its trace has {sizes.rows}"
    if sizes.movements.size == 0 and _are_all_statistics(numbers):
        return numbers, ""
    wrong = np.zeros((steps, rows), bool)
    wrong[:, sizes.statistics] = _no_statistics(numbers[:, sizes.statistics])
    wrong[:, sizes.movements] |= _no_counts(numbers[:, sizes.movements, :_COUNTS_OF_MOVEMENT], sizes.elements)
    if not wrong.any():
        return numbers, ""
    step, row = (int(place[0]) for place in np.nonzero(wrong))
    found = ", ".join(f"{name} {value:g}" for name, value in zip(GRADIENT_STATISTICS, numbers[step, row], strict=True))
    return np.where(wrong[..., None], np.float32(np.nan), numbers), f"has impossible statistics in row {row} ({found})"


def variables_that_fit(numbers: Floats, sizes: Sizes) -> tuple[Floats, str]:
    """The same for `[steps, variables, statistics]`."""
    steps, variables, columns = numbers.shape
    if variables != sizes.variables:
        problem = f"has {variables} variables, but its trace has {sizes.variables}"
        return unmeasured(steps, sizes.variables, columns), problem
    wrong = numbers < 0
    wrong[..., 2:] |= np.isinf(numbers[..., 2:])
    if not wrong.any():
        return numbers, ""
    step, variable, column = (int(place[0]) for place in np.nonzero(wrong))
    found = f"{VARIABLE_STATISTICS[column]} {numbers[step, variable, column]:g}"
    return np.where(wrong, np.float32(np.nan), numbers), f"has an impossible value for variable {variable} ({found})"


def unmeasured(steps: int, rows: int, columns: int) -> Floats:
    """The statistics of a step that measured nothing."""
    return np.broadcast_to(np.float32(np.nan), (steps, rows, columns))


def _are_all_statistics(numbers: Floats) -> bool:
    """A quick check of all rows together: whether everything was measured and is possible. May wrongly be false."""
    if not numbers.size:
        return True
    return bool(numbers.min() >= 0 and numbers.max() < np.inf and numbers[..., _ZEROS].max() <= _WHOLE)


def _no_statistics(numbers: Floats) -> npt.NDArray[np.bool_]:
    """For each row, whether these statistics are impossible; NaN in the first column means that nothing was
    measured."""
    sizes, zeros, counts = numbers[..., :_ZEROS], numbers[..., _ZEROS], numbers[..., _ZEROS + 1 :]
    good = (sizes >= 0).all(-1) & (zeros >= 0) & (zeros <= _WHOLE) & (counts >= 0).all(-1) & np.isfinite(counts).all(-1)
    return np.asarray(~(good | np.isnan(numbers[..., 0])), bool)


def _no_counts(numbers: Floats, most: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """For each row, whether a count of elements is impossible; NaN in the first column means that none is known."""
    too_many = numbers > (most * _WHOLE)[:, None]  # float32 cannot represent every number of elements
    good = (numbers >= 0) & np.isfinite(numbers) & ~too_many
    return np.asarray(~(good.all(-1) | np.isnan(numbers[..., 0])), bool)


def _elements(shape: tuple[int, ...]) -> float:
    return float(min(math.prod(shape), _MANY)) if min(shape, default=0) >= 0 else math.inf
