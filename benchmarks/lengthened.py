"""Makes logs of any number of steps from a short one."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

from tb_gradflow.record.schema import StepRecord
from tb_gradflow.store.directory import DirectoryReader
from tb_gradflow.store.layout import event_file_path
from tb_gradflow.store.run import StoredRun
from tb_gradflow.store.writer import LogWriter, RecordFile


def repeated(source: str, destination: str, steps: int | None) -> int:
    """Writes the log again with `steps` steps, by default as many as it has; how many that are."""
    run = StoredRun(DirectoryReader(source))
    index = run.index()
    wanted = len(index.steps) if steps is None else steps
    with LogWriter(index.session, RecordFile(event_file_path(destination))) as writer:
        for trace in index.traces:
            writer.write_trace(run.trace(index.session.id, trace))
        for number, record in enumerate(itertools.islice(itertools.cycle(records(run)), wanted)):
            writer.write_step(dataclasses.replace(record, step=number))
    return wanted


def records(run: StoredRun) -> Iterator[StepRecord]:
    """Every step of a run."""
    index = run.index()
    for chunk in index.chunks:
        gradients, variables = (read(index.session.id, chunk.id).data for read in (run.gradients, run.variables))
        count = len(chunk.steps)
        for at in range(count):
            yield StepRecord(
                trace=chunk.trace,
                step=chunk.steps[at],
                wall_time=chunk.wall_times[at],
                losses=chunk.losses[at],
                gradients=bytes(gradients[at * len(gradients) // count : (at + 1) * len(gradients) // count]),
                variables=bytes(variables[at * len(variables) // count : (at + 1) * len(variables) // count]),
            )
