"""What was tried in the steps of a log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import tb_gradflow
from tb_gradflow.record.schema import StepValues, Trace


def tried_in(directory: Path) -> Iterator[tuple[Trace, StepValues]]:
    """That of each step, in their order, with the first trace."""
    history = tb_gradflow.open_log(directory).recorded
    index = history.index()
    trace = history.trace(index.session.id, 0)
    for step in sorted(index.with_values):
        known = history.values(index.session.id, step, trace)
        if known is not None:
            yield trace, known
