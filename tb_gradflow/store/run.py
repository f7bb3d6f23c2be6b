"""One recorded run, wherever it is stored: finds its newest session and reads it piece by piece.

The sources (a directory of event files, TensorBoard's DataProvider) differ only in how they list tags and fetch their
data: that is `TagReader`. Arrays stay bytes until they are needed.
"""

from __future__ import annotations

import json
import struct
import zlib
from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from tb_gradflow.errors import LogError
from tb_gradflow.record.cost import Cost
from tb_gradflow.record.schema import Session, StepValues, Trace
from tb_gradflow.record.upgrade import read_session, read_trace, read_values
from tb_gradflow.store.layout import COST_COLUMNS, FIXED_STEP_COLUMNS, Tag, unpack_json


@dataclass(frozen=True, slots=True)
class Array:
    """An array as it is stored in the log: little-endian, row by row."""

    shape: tuple[int, ...]
    data: bytes


class TagReader(Protocol):
    """A source of records. The data of a tag never changes; new tags appear while a training runs."""

    def tags(self) -> Collection[Tag]:
        """All tags that exist now."""

    def blob(self, tag: Tag) -> bytes:
        """A session or a trace. Raises KeyError if there is no data under the tag."""

    def arrays(self, tags: Collection[Tag]) -> Mapping[Tag, Array]:
        """Steps, gradients or variables; missing ones are left out."""


@dataclass(frozen=True, slots=True)
class ChunkHead:
    """A chunk without its arrays.

    Attributes:
        id: Its first step.
        trace: Index of its trace.
        steps: Its steps, increasing.
        wall_times: Seconds since the epoch, one for each step.
        losses: The value of each target, for each step.
    """

    id: int
    trace: int
    steps: tuple[int, ...]
    wall_times: tuple[float, ...]
    losses: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class RunIndex:
    """The content of one session at the time of the request.

    Attributes:
        session: The newest session that recorded something, or the newest of all if none did.
        traces: Indices of its traces, increasing.
        chunks: By first step.
        earlier: Number of other sessions that recorded something in the same place.
        cost: The cost of recording up to the newest chunk; None in logs that do not contain it.
        with_values: The steps whose forward pass was measured.
    """

    session: Session
    traces: tuple[int, ...]
    chunks: tuple[ChunkHead, ...]
    earlier: int = 0
    cost: Cost | None = None
    with_values: frozenset[int] = frozenset()

    @property
    def steps(self) -> tuple[int, ...]:
        """All recorded steps, increasing."""
        return tuple(step for chunk in self.chunks for step in chunk.steps)

    def find(self, step: int) -> tuple[ChunkHead, int] | None:
        """The chunk that contains `step`, and the step's position in it; None if it was not recorded."""
        at = bisect_right(self.chunks, step, key=lambda chunk: chunk.id) - 1
        if at < 0 or step not in self.chunks[at].steps:
            return None
        return self.chunks[at], self.chunks[at].steps.index(step)


class StoredRun:
    """Reads one run.

    Caches heads of chunks and sessions, which are small. Caching the rest is up to the caller.
    """

    def __init__(self, reader: TagReader) -> None:
        self._reader = reader
        self._heads: dict[Tag, ChunkHead] = {}
        self._sessions: dict[str, Session] = {}
        self._costs: dict[Tag, Cost] = {}

    def index(self) -> RunIndex:
        """The current content. Raises LogError if it cannot be read, or if there is none."""
        tags = self._reader.tags()
        session = self.session(newest_session(tags))
        of_session = [tag for tag in tags if tag.session == session.id]
        traces = sorted(tag.number for tag in of_session if tag.kind == "trace")
        heads = self._read_heads([tag for tag in of_session if tag.kind == "steps"])
        earlier = {tag.session for tag in tags if tag.kind == "trace"} - {session.id}
        cost = self._read_cost([tag for tag in of_session if tag.kind == "cost"])
        measured = frozenset(tag.number for tag in of_session if tag.kind == "values")
        return RunIndex(session, tuple(traces), tuple(heads), len(earlier), cost, measured)

    def session(self, id: str) -> Session:
        """Raises LogError if it cannot be read."""
        if id not in self._sessions:
            self._sessions[id] = read_session(self._json(Tag("session", id, -1)))
        return self._sessions[id]

    def trace(self, session: str, index: int) -> Trace:
        """Raises KeyError if there is none, LogError if it cannot be read."""
        return read_trace(self._json(Tag("trace", session, index)), self.session(session).format)

    def trace_blob(self, session: str, index: int) -> bytes:
        """The same as it is stored in the log: gzipped JSON, in the format of its session."""
        return self._reader.blob(Tag("trace", session, index))

    def gradients(self, session: str, chunk: int) -> Array:
        """Float32 `[steps, rows, 6]`. Raises KeyError if there is no such chunk."""
        tag = Tag("gradients", session, chunk)
        return self._reader.arrays([tag])[tag]

    def variables(self, session: str, chunk: int) -> Array:
        """Float32 `[steps, variables, 2]`. Raises KeyError if there is no such chunk."""
        tag = Tag("variables", session, chunk)
        return self._reader.arrays([tag])[tag]

    def values(self, session: str, step: int) -> StepValues:
        """The forward values of a step. Raises KeyError if they were not measured, LogError if they cannot be read."""
        return read_values(self._json(Tag("values", session, step)))

    def _read_cost(self, tags: Collection[Tag]) -> Cost | None:
        """The cost that was written last."""
        if not tags:
            return None
        newest = max(tags, key=lambda tag: tag.number)
        if newest not in self._costs:
            found = self._reader.arrays([newest])
            if newest not in found:
                return None
            steps, recorded, *seconds = struct.unpack(f"<{len(COST_COLUMNS)}d", found[newest].data)
            self._costs = {newest: Cost(int(steps), int(recorded), *seconds)}
        return self._costs[newest]

    def _json(self, tag: Tag) -> object:
        blob = self._reader.blob(tag)
        try:
            return unpack_json(blob)
        except (OSError, EOFError, zlib.error, UnicodeDecodeError, json.JSONDecodeError) as damage:
            raise LogError(f"damaged log: {tag} cannot be unpacked ({damage})") from damage

    def _read_heads(self, tags: Collection[Tag]) -> list[ChunkHead]:
        unknown = [tag for tag in tags if tag not in self._heads]
        if unknown:
            for tag, table in self._reader.arrays(unknown).items():
                self._heads[tag] = read_head(tag, table)
        return sorted((self._heads[tag] for tag in tags if tag in self._heads), key=lambda head: head.id)


def newest_session(tags: Collection[Tag]) -> str:
    """Id of the newest session that has a trace; or of the newest of all if none has one yet."""
    sessions = {tag.session for tag in tags if tag.kind == "session"}
    recorded = sessions & {tag.session for tag in tags if tag.kind == "trace"}
    if not sessions:
        raise LogError("the log has no session: its file was cut off before the recording began")
    return max(recorded or sessions)


def read_head(tag: Tag, table: Array) -> ChunkHead:
    """The head from the float64 table of a `steps` tag."""
    if len(table.shape) != 2 or table.shape[0] < 1 or table.shape[1] < FIXED_STEP_COLUMNS:
        raise LogError(f"damaged log: {tag} has shape {table.shape}, expected [steps, {FIXED_STEP_COLUMNS} or more]")
    rows = list(struct.iter_unpack(f"<{table.shape[1]}d", table.data))
    return ChunkHead(
        id=tag.number,
        trace=int(rows[0][2]),
        steps=tuple(int(row[0]) for row in rows),
        wall_times=tuple(row[1] for row in rows),
        losses=tuple(row[FIXED_STEP_COLUMNS:] for row in rows),
    )
