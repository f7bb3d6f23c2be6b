"""The recorded logs beside this file: what `record` wrote, and as event files that the package opens.

A group is one file of compressed lines, each a log as JSON: its session, its traces in the format of that session, and
its steps. Logs have much in common, and take a tenth of the space of event files.
"""

from __future__ import annotations

import base64
import functools
import json
import lzma
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import tb_gradflow
from tb_gradflow.api import Log
from tb_gradflow.record.codec import encode
from tb_gradflow.record.schema import StepRecord
from tb_gradflow.record.upgrade import read_session, read_trace, read_values
from tb_gradflow.store.layout import event_file_path
from tb_gradflow.store.run import StoredRun
from tb_gradflow.store.writer import LogWriter, RecordFile

LOGS = Path(__file__).with_name("logs")

BEGAN = 1_700_000_000
"""When each recording began, in seconds since the epoch. Its steps follow in intervals of a second."""

Json = dict[str, Any]


def groups() -> list[str]:
    return sorted(path.name.removesuffix(".xz") for path in LOGS.glob("*.xz"))


@functools.cache
def group(name: str) -> Mapping[str, str]:
    """Name of each log of a group -> its JSON."""
    lines = lzma.decompress((LOGS / f"{name}.xz").read_bytes()).decode().splitlines()
    return dict(line.split("\t", 1) for line in lines)


def save_group(name: str, logs: Mapping[str, str]) -> None:
    lines = "".join(f"{each}\t{logs[each]}\n" for each in sorted(logs))
    LOGS.mkdir(exist_ok=True)
    (LOGS / f"{name}.xz").write_bytes(lzma.compress(lines.encode(), preset=9 | lzma.PRESET_EXTREME))


def names() -> list[str]:
    """Of all logs, as `group/name`."""
    return [f"{each}/{name}" for each in groups() for name in group(each)]


def packed(run: StoredRun) -> str:
    """The newest session of a run as JSON, at a time that is always the same."""
    index = run.index()
    log = {
        "session": encode(replace(index.session, id=f"{BEGAN * 1000:013d}")),
        "traces": [encode(run.trace(index.session.id, number)) for number in index.traces],
        "steps": [_packed_step(step) for step in _steps_of(run)],
    }
    return json.dumps(log, separators=(",", ":"))


def _steps_of(run: StoredRun) -> Iterator[StepRecord]:
    index = run.index()
    for chunk in index.chunks:
        trace = run.trace(index.session.id, chunk.trace)
        gradients, variables = (read(index.session.id, chunk.id).data for read in (run.gradients, run.variables))
        count = len(chunk.steps)
        for at, step in enumerate(chunk.steps):
            yield StepRecord(
                trace=chunk.trace,
                step=step,
                wall_time=float(BEGAN + step),
                losses=chunk.losses[at],
                gradients=bytes(gradients[at * len(gradients) // count : (at + 1) * len(gradients) // count]),
                variables=bytes(variables[at * len(variables) // count : (at + 1) * len(variables) // count]),
                values=run.values(index.session.id, step, trace) if step in index.with_values else None,
            )


def _packed_step(step: StepRecord) -> Json:
    return {
        "trace": step.trace,
        "step": step.step,
        "losses": step.losses,
        "gradients": base64.b64encode(step.gradients).decode(),
        "variables": base64.b64encode(step.variables).decode(),
        "values": encode(step.values) if step.values is not None else None,
    }


def unpack(log: Json, directory: Path) -> None:
    """Writes a log as an event file."""
    session = read_session(log["session"])
    traces = [read_trace(trace, session.format) for trace in log["traces"]]
    with LogWriter(session, RecordFile(event_file_path(str(directory)))) as writer:
        for trace in traces:
            writer.write_trace(trace)
        for step in _steps(log["steps"], {trace.index: trace for trace in traces}):
            writer.write_step(step)


def _steps(steps: Iterable[Json], traces: Mapping[int, Any]) -> Iterator[StepRecord]:
    for step in steps:
        yield StepRecord(
            trace=step["trace"],
            step=step["step"],
            wall_time=float(BEGAN + step["step"]),
            losses=tuple(step["losses"]),
            gradients=base64.b64decode(step["gradients"]),
            variables=base64.b64decode(step["variables"]),
            values=read_values(step["values"], traces[step["trace"]]) if step["values"] is not None else None,
        )


def opened(name: str, directory: Path) -> Log:
    """A log, written into an empty directory."""
    of, _, short = name.partition("/")
    unpack(json.loads(group(of)[short]), directory)
    return tb_gradflow.open_log(directory)


def run_of(log: Log) -> StoredRun:
    return log.recorded._run
