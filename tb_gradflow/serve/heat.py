"""Every variable over every step, as one picture: a number for each, absence and what is not finite told apart."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tb_gradflow.record.schema import GRADIENT_STATISTICS, VARIABLE_STATISTICS, Trace
from tb_gradflow.serve.history import READERS, Floats, History
from tb_gradflow.store.run import ChunkHead

QUANTITIES = ("gradient", "weight", "update", "ratio")

NO_GRADIENT = -1.0
"""The tape answered None."""
NOT_RECORDED = -2.0
"""Nobody asked, or the step did not measure it."""

MOST_NUMBERS = 4_000_000
"""Of one answer: 16 MB before packing. More columns than that are put together."""

NORM, NANS, INFS = (GRADIENT_STATISTICS.index(name) for name in ("norm", "nan_count", "inf_count"))
WEIGHT, UPDATE = (VARIABLE_STATISTICS.index(name) for name in ("weight_norm", "update_norm"))
NONFINITE = VARIABLE_STATISTICS.index("nonfinite_after")


def heat(history: History, trace: int, target: int, quantity: str, columns: int) -> Floats:
    """`[columns, variables]`, the variables being those of `trace`; variables of other traces are found by name.

    `quantity` is `gradient`, `weight`, `update` or `ratio` (of the update to the weight), all of them L2 norms. NaN
    where there is a NaN, infinity where there is one, NO_GRADIENT and NOT_RECORDED for the rest. There are at most
    `columns` columns; where there are more steps, column `c` of `n` stands for the steps from `c * steps // n` up to
    the next column's, and shows the last of them, or the worst if one is worse than a finite number.
    """
    index = history.index()
    names = [variable.name for variable in history.trace(index.session.id, trace).variables]

    def part(head: ChunkHead) -> Floats:
        own = history.trace(index.session.id, head.trace)
        if quantity == "gradient":
            numbers = gradient(history, index.session.id, head, own, target)
        else:
            numbers = value(history.variables(index.session.id, head.id), quantity)
        place = {variable.name: at for at, variable in enumerate(own.variables)}
        # One column more, for the variables that this trace does not have.
        padded = np.pad(numbers, ((0, 0), (0, 1)), constant_values=NOT_RECORDED)
        return np.asarray(padded[:, [place.get(name, -1) for name in names]], np.float32)

    with ThreadPoolExecutor(READERS) as readers:
        parts = list(readers.map(part, index.chunks))
    whole = np.concatenate(parts) if parts else np.empty((0, len(names)), np.float32)
    return together(whole, max(1, min(columns, MOST_NUMBERS // max(1, len(names)))))


def gradient(history: History, session: str, head: ChunkHead, trace: Trace, target: int) -> Floats:
    """`[steps, variables]`: the norms of the gradients of a chunk."""
    recorded = history.gradients(session, head.id)
    result = np.full((recorded.shape[0], len(trace.variables)), NOT_RECORDED, np.float32)
    for each in trace.variable_gradients:
        if each.target == target and each.outcome == "none":
            result[:, each.variable] = NO_GRADIENT
        elif each.target == target and each.row is not None and each.row < recorded.shape[1]:
            result[:, each.variable] = told(recorded[:, each.row])
    return result


def told(rows: Floats) -> Floats:
    """`[steps]` from the statistics of one row, `[steps, statistics]`."""
    norms = np.where(np.isnan(rows[:, NORM]), NOT_RECORDED, rows[:, NORM])
    norms = np.where(rows[:, INFS] > 0, np.inf, norms)
    return np.asarray(np.where(rows[:, NANS] > 0, np.nan, norms), np.float32)


def value(rows: Floats, quantity: str) -> Floats:
    """`[steps, variables]` from `[steps, variables, statistics]`."""
    weight, update = rows[..., WEIGHT], rows[..., UPDATE]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(weight > 0, update / weight, np.nan)
    chosen = {"weight": weight, "update": update, "ratio": ratio}[quantity]
    known = np.where(np.isnan(chosen), NOT_RECORDED, chosen)
    bad = rows[..., NONFINITE] > 0 if rows.shape[-1] > NONFINITE else np.zeros(weight.shape, bool)
    return np.asarray(np.where(bad, np.nan, known), np.float32)


def together(whole: Floats, columns: int) -> Floats:
    """At most so many rows: the last of each stretch, or its worst if that is worse than a finite number."""
    steps = whole.shape[0]
    if steps <= columns:
        return whole
    starts = np.arange(columns) * steps // columns
    last = whole[np.append(starts[1:], steps) - 1]
    worst = np.maximum.reduceat(_badness(whole), starts, axis=0)
    marks = np.array([np.nan, np.nan, 0.0, NO_GRADIENT, np.inf, np.nan], np.float32)
    return np.where(worst > np.maximum(_badness(last), 1), marks[worst], last)


def _badness(values: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    """0 not recorded, 1 a finite number, 2 zero, 3 no gradient, 4 infinite, 5 NaN."""
    conditions = [np.isnan(values), np.isinf(values), values == NO_GRADIENT, values == 0, values > 0]
    return np.select(conditions, [5, 4, 3, 2, 1], 0).astype(np.int8)
