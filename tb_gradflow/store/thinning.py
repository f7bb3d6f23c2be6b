"""Reduces a log that has reached its size limit to every second step."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tb_gradflow.record.schema import GRADIENT_STATISTICS, VARIABLE_STATISTICS, StepRecord
from tb_gradflow.store.run import Array, ChunkHead, StoredRun
from tb_gradflow.store.writer import LogWriter

_FLOAT32_BYTES = 4


def thin(run: StoredRun, session: str, writer: LogWriter, pinned: Collection[int] = ()) -> int:
    """Writes every second step of that session of `run`, and the `pinned` steps, to `writer`, which has another
    session. Returns how many steps there were.

    Raises LogError if the run cannot be read.
    """
    index = run.index_of(session)
    traces = {trace: run.trace(session, trace) for trace in index.traces}
    for trace in traces.values():
        writer.write_trace(trace)
    position = 0
    for head in index.chunks:
        gradients, variables = run.gradients(session, head.id), run.variables(session, head.id)
        for at, step in enumerate(head.steps):
            if position % 2 == 0 or step in pinned:
                values = run.values(session, step, traces[head.trace]) if step in index.with_values else None
                writer.keep_step(replace(_record(head, at, gradients, variables), values=values))
            position += 1
    writer.flush()
    return position


def _record(head: ChunkHead, at: int, gradients: Array, variables: Array) -> StepRecord:
    return StepRecord(
        head.trace,
        head.steps[at],
        head.wall_times[at],
        head.losses[at],
        _row(gradients, at, len(GRADIENT_STATISTICS)),
        _row(variables, at, len(VARIABLE_STATISTICS)),
    )


def _row(array: Array, at: int, columns: int) -> bytes:
    size = array.shape[1] * columns * _FLOAT32_BYTES
    return array.data[at * size : (at + 1) * size]
