"""The steps of a recorded run, each with everything that two runs are compared by."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tb_gradflow.analyse.divergence.recorded import Floats, RecordedStep
from tb_gradflow.record.schema import VARIABLE_STATISTICS, Trace
from tb_gradflow.serve.runs.history import History

_WEIGHT = VARIABLE_STATISTICS.index("weight_norm")


def common_steps(a: History, b: History) -> Iterator[tuple[RecordedStep, RecordedStep]]:
    """The steps that both runs have recorded, increasing."""
    steps = sorted(set(a.refresh().steps) & set(b.refresh().steps))
    for step in steps:
        one, other = recorded_step(a, step), recorded_step(b, step)
        if one is not None and other is not None:
            yield one, other


def recorded_step(history: History, step: int) -> RecordedStep | None:
    """One step; None if its trace cannot be read."""
    index = history.index()
    found = index.find(step)
    if found is None:
        return None
    head, at = found
    id = index.session.id
    trace = next((trace for _, trace in history.with_traces(id, [head])), None)
    if trace is None:
        return None
    return RecordedStep(
        step,
        index.session,
        trace,
        history.losses(id, head, at),
        history.measured(id, head)[at],
        history.moved(id, head)[at],
        _before(history, step, trace),
    )


def _before(history: History, step: int, trace: Trace) -> Floats:
    """`[variables, 2]`: norm and sum of each variable before a step, as measured then, or after the step before it."""
    index = history.index()
    known = np.full((len(trace.variables), 2), np.nan, np.float32)
    values = history.values(index.session.id, step, trace)
    for each in () if values is None else values.weights:
        known[each.variable] = each.norm, each.sum
    found = index.find(step - 1)
    if found is None or not np.isnan(known).any():
        return known
    head, at = found
    for _, earlier in history.with_traces(index.session.id, [head]):
        norms = history.moved(index.session.id, head)[at][:, _WEIGHT]
        by_name = {variable.name: norm for variable, norm in zip(earlier.variables, norms, strict=True)}
        for number, variable in enumerate(trace.variables):
            if np.isnan(known[number, 0]):
                known[number, 0] = by_name.get(variable.name, np.nan)
    return known
