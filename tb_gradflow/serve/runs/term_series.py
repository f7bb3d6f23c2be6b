"""The terms of a loss over all steps: what each contributed, and the norm of each of its gradients."""

from __future__ import annotations

import numpy as np

from tb_gradflow.record.schema import Trace
from tb_gradflow.serve.runs.heat import NOT_RECORDED, told
from tb_gradflow.serve.runs.history import Floats, History
from tb_gradflow.serve.runs.readers import side_by_side
from tb_gradflow.store.run import ChunkHead

MOST_NUMBERS = 4_000_000
"""Limit for one response, as of the heat map."""

# The first column of the row of a term.
_VALUE = 0

_Key = tuple[str, ...]


def term_series(history: History, trace: int, columns: int) -> Floats:
    """`[columns, terms + term gradients]`, both in the order of `trace`; those of other traces are matched by the names
    of target, term and variable.

    First the value of each term, NaN if it was not measured or is not a number; then norms, encoded as in `heat`.
    There are at most `columns` columns. If there are more steps, column `c` of `n` shows the last one before step
    number `(c + 1) * steps // n`.
    """
    index = history.index()
    own_trace = history.trace(index.session.id, trace)
    wanted, values = _keys(own_trace), len(own_trace.terms)
    traces = {head.trace: each for head, each in history.with_traces(index.session.id, index.chunks)}
    places = {number: _places(wanted, _keys(each)) for number, each in traces.items()}

    def part(head: ChunkHead) -> Floats:
        numbers = np.full((len(head.steps), len(wanted)), NOT_RECORDED, np.float32)
        numbers[:, :values] = np.nan
        if head.trace in traces:
            recorded = history.measured(index.session.id, head)
            rows = _rows(traces[head.trace])
            for own, place in enumerate(places[head.trace]):
                if place >= 0:
                    row = recorded[:, rows[place]]
                    numbers[:, own] = row[:, _VALUE] if own < values else told(row)
        return numbers

    parts = side_by_side(part, index.chunks)
    whole = np.concatenate(parts) if parts else np.empty((0, len(wanted)), np.float32)
    most = max(1, min(columns, MOST_NUMBERS // max(1, len(wanted))))
    if len(whole) <= most:
        return whole
    return whole[(np.arange(most) + 1) * len(whole) // most - 1]


def _keys(trace: Trace) -> list[_Key]:
    """What identifies each value and each gradient of a term in another trace."""
    terms: list[_Key] = [(trace.targets[term.target].name, term.name) for term in trace.terms]
    return terms + [(*terms[each.term], trace.variables[each.variable].name) for each in trace.term_gradients]


def _rows(trace: Trace) -> list[int]:
    return [each.row for each in trace.terms] + [each.row for each in trace.term_gradients]


def _places(wanted: list[_Key], there: list[_Key]) -> list[int]:
    """The positions of these keys in another trace; -1 for those that it does not have."""
    known = {key: place for place, key in enumerate(there)}
    return [known.get(key, -1) for key in wanted]
