"""The heat map of all variables over all steps: a number for each, with distinct codes for missing and non-finite
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tb_gradflow.record.schema import (
    CLIP_STATISTICS,
    GRADIENT_STATISTICS,
    LOSS_SCALE_STATISTICS,
    VARIABLE_STATISTICS,
    Trace,
)
from tb_gradflow.serve.runs.history import Floats, History
from tb_gradflow.serve.runs.readers import side_by_side
from tb_gradflow.store.run import ChunkHead

OF_UPDATES = ("clip", "scale", "skipped")
"""What is measured of updates: the part of the norm that clips leave, the loss scale, and the steps that it skipped."""

QUANTITIES = ("gradient", "weight", "update", "ratio", *OF_UPDATES)

NO_GRADIENT = -1.0
"""The tape returned None."""
NOT_RECORDED = -2.0
"""Not requested, or not measured in that step."""

MOST_NUMBERS = 4_000_000
"""Limit for one response: 16 MB before compression. Steps beyond it are merged into columns."""

NORM, NANS, INFS = (GRADIENT_STATISTICS.index(name) for name in ("norm", "nan_count", "inf_count"))
WEIGHT, UPDATE = (VARIABLE_STATISTICS.index(name) for name in ("weight_norm", "update_norm"))
BEFORE, AFTER = (CLIP_STATISTICS.index(name) for name in ("before", "after"))
SCALE, UPDATES = (LOSS_SCALE_STATISTICS.index(name) for name in ("scale", "updates"))
NONFINITE = VARIABLE_STATISTICS.index("nonfinite_after")


def heat(history: History, trace: int, target: int, quantity: str, columns: int) -> Floats:
    """`[columns, variables]`, for the variables of `trace`; variables of other traces are matched by name.

    `quantity` is `gradient`, `weight`, `update` or `ratio` (of the update to the weight), all of them L2 norms; or one
    of `OF_UPDATES`, for the variables that are clipped, or updated by an optimizer that adapts its loss scale. A value
    is NaN if the tensor had a NaN, infinite if it had an infinity, or NO_GRADIENT or NOT_RECORDED. There are at most
    `columns` columns. If there are more steps, column `c` of `n` stands for the steps from `c * steps // n` up to the
    next column. It shows the last of these steps, or the worst one if that is worse than a finite number.
    """
    index = history.index()
    names = [variable.name for variable in history.trace(index.session.id, trace).variables]
    traces = {head.trace: each for head, each in history.with_traces(index.session.id, index.chunks)}
    asked = {number: Asked.of(each, target) for number, each in traces.items()}
    # One extra column, for variables that a trace does not have.
    places = {number: _places(names, each) for number, each in traces.items()}
    heads = [head for head in index.chunks if head.trace in traces and traces[head.trace].loss_scales]
    base = 0.0
    if quantity == "skipped" and heads:
        base = base_of(history.measured(index.session.id, heads[0]), traces[heads[0].trace], heads[0].steps[0])

    def part(head: ChunkHead) -> Floats:
        if head.trace not in traces:
            return np.full((len(head.steps), len(names)), NOT_RECORDED, np.float32)
        if quantity == "gradient":
            numbers = gradients(history.measured(index.session.id, head), asked[head.trace])
        elif quantity in OF_UPDATES:
            recorded = history.measured(index.session.id, head)
            numbers = of_updates(recorded, traces[head.trace], head.steps, quantity, base)
        else:
            numbers = value(history.moved(index.session.id, head), quantity)
        padded = np.pad(numbers, ((0, 0), (0, 1)), constant_values=NOT_RECORDED)
        return np.asarray(padded[:, places[head.trace]], np.float32)

    parts = side_by_side(part, index.chunks)
    whole = np.concatenate(parts) if parts else np.empty((0, len(names)), np.float32)
    return together(whole, max(1, min(columns, MOST_NUMBERS // max(1, len(names)))))


def _places(names: Sequence[str], trace: Trace) -> list[int]:
    """The indices of these names among a trace's variables; -1 for names that it does not have."""
    own = {variable.name: at for at, variable in enumerate(trace.variables)}
    return [own.get(name, -1) for name in names]


@dataclass(frozen=True, slots=True)
class Asked:
    """The gradients that were requested for one target.

    Attributes:
        variables: Number of variables of the trace.
        none: Variables for which the tape returned None.
        measured: Variables that have a row of statistics.
        rows: The row of each of these.
    """

    variables: int
    none: list[int]
    measured: npt.NDArray[np.intp]
    rows: npt.NDArray[np.intp]

    @classmethod
    def of(cls, trace: Trace, target: int) -> Asked:
        asked = [each for each in trace.variable_gradients if each.target == target]
        places = [(each.variable, each.row) for each in asked if each.outcome != "none" and each.row is not None]
        return cls(
            len(trace.variables),
            [each.variable for each in asked if each.outcome == "none"],
            np.array([variable for variable, _ in places], np.intp),
            np.array([row for _, row in places], np.intp),
        )


def gradients(recorded: Floats, asked: Asked) -> Floats:
    """`[steps, variables]`: the norms of the gradients of a chunk, `[steps, rows, statistics]`."""
    result = np.full((recorded.shape[0], asked.variables), NOT_RECORDED, np.float32)
    result[:, asked.none] = NO_GRADIENT
    result[:, asked.measured] = told(recorded[:, asked.rows])
    return result


def told(rows: Floats) -> Floats:
    """One number for each row of statistics, `[…, statistics]`."""
    norms = np.where(np.isnan(rows[..., NORM]), NOT_RECORDED, rows[..., NORM])
    norms = np.where(rows[..., INFS] > 0, np.inf, norms)
    return np.asarray(np.where(rows[..., NANS] > 0, np.nan, norms), np.float32)


def value(rows: Floats, quantity: str) -> Floats:
    """`[steps, variables]` from `[steps, variables, statistics]`."""
    weight, update = rows[..., WEIGHT], rows[..., UPDATE]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(weight > 0, update / weight, np.nan)
    chosen = {"weight": weight, "update": update, "ratio": ratio}[quantity]
    known = np.where(np.isnan(chosen), NOT_RECORDED, chosen)
    bad = rows[..., NONFINITE] > 0 if rows.shape[-1] > NONFINITE else np.zeros(weight.shape, bool)
    return np.asarray(np.where(bad, np.nan, known), np.float32)


def of_updates(recorded: Floats, trace: Trace, steps: Sequence[int], quantity: str, base: float) -> Floats:
    """`[steps, variables]`: one of `OF_UPDATES`, from a chunk. For `base` see `base_of`."""
    result = np.full((len(steps), len(trace.variables)), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        for clip in trace.clips if quantity == "clip" else ():
            before, after = recorded[:, clip.row, BEFORE], recorded[:, clip.row, AFTER]
            left = np.where(before == 0, 1.0, after / before)
            for variable in clip.variables:
                result[:, variable] = np.where(np.isnan(result[:, variable]), 1.0, result[:, variable]) * left
    for scale in trace.loss_scales if quantity != "clip" else ():
        skipped = np.array(steps) + 1 - recorded[:, scale.row, UPDATES] - base
        numbers = recorded[:, scale.row, SCALE] if quantity == "scale" else skipped
        for each in trace.movements:
            if each.optimizer == scale.optimizer:
                result[:, each.variable] = numbers
    return np.asarray(np.where(np.isnan(result) | (result < 0), NOT_RECORDED, result), np.float32)


def base_of(recorded: Floats, trace: Trace, step: int) -> float:
    """What an optimizer seems to have skipped before the first recorded step: below zero if it has applied more updates
    than this training has had steps."""
    return min(0.0, float(np.nan_to_num(step + 1 - recorded[0, trace.loss_scales[0].row, UPDATES])))


def together(whole: Floats, columns: int) -> Floats:
    """At most this many rows: the last one of each interval, or its worst if that is worse than a finite number."""
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
