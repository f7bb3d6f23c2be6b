"""One recorded run, regardless of where it is stored: finds its newest session and reads it piece by piece, together
with the earlier sessions that it continues.

The sources (a directory of event files, TensorBoard's DataProvider) differ only in how they list tags and fetch their
data: that is `TagReader`. Arrays stay bytes until they are needed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from tb_gradflow.errors import DamagedRecord, LogError
from tb_gradflow.record.cost import Cost
from tb_gradflow.record.schema import GRADIENT_STATISTICS, VARIABLE_STATISTICS, Session, StepValues, Trace, Trials
from tb_gradflow.record.upgrade import read_session, read_trace, read_trials, read_values
from tb_gradflow.store.chunks import Array as Array
from tb_gradflow.store.chunks import ChunkHead as ChunkHead
from tb_gradflow.store.chunks import check_numbers, first_rows, first_steps, in_order, read_cost, read_head
from tb_gradflow.store.layout import MOST_JSON, MOST_JSON_OF_SESSION, Tag, unpack_json, unzipped
from tb_gradflow.store.warning import warn_of

Read = TypeVar("Read")

_COLUMNS = {"gradients": len(GRADIENT_STATISTICS), "variables": len(VARIABLE_STATISTICS)}

_EARLIER_TRACES = 10**6
"""The traces of the newest session keep their numbers; those of the session before it are counted from here, those of
the one before that from twice as much. So no number changes while a training continues."""


class TagReader(Protocol):
    """A source of records. The data of a tag never changes; new tags appear while a training runs."""

    def tags(self) -> Collection[Tag]:
        """All tags that exist now."""

    def blob(self, tag: Tag) -> bytes:
        """A session or a trace. Raises KeyError if there is no data under the tag."""

    def arrays(self, tags: Collection[Tag]) -> Mapping[Tag, Array]:
        """Steps, gradients or variables; those that are not there are left out, those that cannot be read say why."""

    def problems(self) -> Collection[str]:
        """Damage to the storage itself, where it is not known which record was lost."""


@dataclass(frozen=True, slots=True)
class RunIndex:
    """The content of one session at the time of the request, with what it continues of earlier sessions.

    Attributes:
        session: The newest session that recorded something, or the newest of all if none did.
        traces: Indices of the traces, in the order in which they were recorded.
        chunks: By first step.
        earlier: Number of other sessions that recorded something in the same place, and of which nothing is here.
        cost: The cost of recording in this session up to the newest chunk; None in logs that do not contain it.
        with_values: The steps of which more was measured than gradients: see `StepValues`.
        damaged: The parts of the log that cannot be read and are left out.
        tried: Where the results of edits are that were tried.
    """

    session: Session
    traces: tuple[int, ...]
    chunks: tuple[ChunkHead, ...]
    earlier: int = 0
    cost: Cost | None = None
    with_values: frozenset[int] = frozenset()
    damaged: tuple[str, ...] = ()
    tried: frozenset[Tag] = frozenset()

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


@dataclass(frozen=True, slots=True)
class _Part:
    """A session, or what is left of it: later sessions replace the steps from their first one on.

    Attributes:
        session: Its id.
        traces: What is added to the numbers of its traces.
        began: Its first step; -1 if it has none.
        until: The first step of the part that follows it; None for the last part.
        chunks: The chunks with these steps, and the numbers of their traces as they are stored.
    """

    session: str
    traces: int
    began: int
    until: int | None
    chunks: tuple[ChunkHead, ...]


class StoredRun:
    """Reads one run.

    A training that was interrupted and resumed is one run of several sessions. As in TensorBoard, the steps of a later
    session replace those of earlier ones from its first step on, so that a training from step zero replaces them all.
    Sessions that were recorded at the same time do not belong together.

    Caches heads of chunks and sessions, which are small. Caching the rest is up to the caller.
    """

    def __init__(self, reader: TagReader) -> None:
        self._reader = reader
        self._heads: dict[Tag, ChunkHead] = {}
        self._sessions: dict[str, Session] = {}
        self._costs: dict[Tag, Cost] = {}
        self._damaged: dict[Tag, str] = {}
        self._tried = frozenset[Tag]()
        # By the newest session.
        self._parts: dict[str, list[_Part]] = {}

    def index(self, tags: Collection[Tag] | None = None) -> RunIndex:
        """What is there now, or was when `tags` were listed. Raises LogError if that cannot be read, or if there is
        nothing.

        A chunk that is damaged is left out, and said to be.
        """
        tags = self._reader.tags() if tags is None else tags
        session = self.session(newest_session(tags))
        of_session: dict[str, list[Tag]] = {}
        for tag in tags:
            of_session.setdefault(tag.session, []).append(tag)
        costs = [tag for tag in of_session[session.id] if tag.kind == "cost"]
        self._parts[session.id] = parts = self._joined(session.id, of_session, costs)
        ours = [(part, tag) for part in parts for tag in of_session[part.session]]
        traces = [part.traces + number for part in parts for number in _numbers_of("trace", of_session[part.session])]
        chunks = [
            replace(head, trace=part.traces + head.trace)
            for part in parts
            for head in (first_steps(head, part.until) for head in part.chunks)
        ]
        recorded = {tag.session for tag in tags if tag.kind == "trace"}
        self._tried = frozenset(tag for _, tag in ours if tag.kind == "trials")
        measured = frozenset(
            tag.number for part, tag in ours if tag.kind == "values" and (part.until is None or tag.number < part.until)
        )
        damaged = (*self._reader.problems(), *(self._damaged[tag] for _, tag in ours if tag in self._damaged))
        return RunIndex(
            session,
            tuple(traces),
            tuple(chunks),
            len(recorded - {part.session for part in parts}),
            self._read_cost(costs),
            measured,
            damaged,
            self._tried,
        )

    def index_of(self, session: str) -> RunIndex:
        """The same for that session alone."""
        return self.index([tag for tag in self._reader.tags() if tag.session == session])

    def _joined(self, newest: str, of_session: Mapping[str, Collection[Tag]], costs: Collection[Tag]) -> list[_Part]:
        """The parts of a run, the earliest first."""
        sessions = sorted(id for id in of_session if id <= newest and Tag("session", id, -1) in of_session[id])
        parts: list[_Part] = []
        for back, id in enumerate(reversed(sessions)):
            later = parts[-1] if parts else None
            if later is not None and later.began <= 0:
                break
            steps = [tag for tag in of_session[id] if tag.kind == "steps"]
            if later is None:
                heads = self._read_heads(steps, max(costs, key=lambda tag: tag.number, default=None))
            else:
                with suppress(LogError):
                    self.session(id)
                heads = self._read_heads(steps, None) if id in self._sessions else []
                if not heads or heads[-1].wall_times[-1] > later.chunks[0].wall_times[0]:
                    continue
                heads = [head for head in heads if head.id < later.began]
            if heads or later is None:
                until = None if later is None else later.began
                parts.append(_Part(id, back * _EARLIER_TRACES, heads[0].id if heads else -1, until, tuple(heads)))
        return parts[::-1]

    def session(self, id: str) -> Session:
        """Raises LogError if it cannot be read."""
        if id not in self._sessions:
            tag = Tag("session", id, -1)
            session = read_session(self._json(tag))
            if session.id != id:
                raise DamagedRecord(f"damaged log: {tag} holds the session {session.id}")
            self._sessions[id] = session
        return self._sessions[id]

    def trace(self, session: str, index: int, packed: bytes | None = None) -> Trace:
        """Raises KeyError if there is none, LogError if it cannot be read. `packed` is what `packed_trace` returned, if
        that was read before."""
        tag = self._trace_tag(session, index)
        value = _unpacked(tag, self._reader.blob(tag) if packed is None else packed)
        written = self.session(tag.session).format
        with _naming(tag):
            trace = read_trace(value, written)
        if trace.index != tag.number:
            raise DamagedRecord(f"damaged log: {tag} holds the trace {trace.index}")
        tried = [self._trials(tag) for tag in self.tried_in(session, index)]
        trials = [each for known in tried for each in known.trials]
        fits = [each for known in tried for each in known.fits]
        metrics = [each for known in tried for each in known.metrics]
        return replace(
            trace,
            index=index,
            trials=(*trials, *trace.trials),
            fits=(*fits, *trace.fits),
            metrics=(*metrics, *trace.metrics),
        )

    def _trials(self, tag: Tag) -> Trials:
        if tag in self._damaged:
            return Trials(())
        try:
            value = self._json(tag)
            with _naming(tag):
                return read_trials(value)
        except DamagedRecord as damage:
            self._leave_out(tag, damage)
            return Trials(())

    def packed_trace(self, session: str, index: int) -> bytes:
        """The same as it lies in the log, unchecked. Raises KeyError."""
        return self._reader.blob(self._trace_tag(session, index))

    def tried_in(self, session: str, index: int) -> tuple[Tag, ...]:
        """Where the results of edits are that were tried at the end of the session that recorded that trace."""
        recorded_in = self._trace_tag(session, index).session
        return tuple(sorted((each for each in self._tried if each.session == recorded_in), key=lambda tag: tag.number))

    def format_of(self, session: str, index: int) -> int:
        """The format in which that trace is stored."""
        return self.session(self._trace_tag(session, index).session).format

    def trace_blob(self, session: str, index: int) -> bytes | None:
        """The same as it is stored: gzipped JSON, in the format of its session; None if it has another number there.
        Only its size is checked."""
        tag = self._trace_tag(session, index)
        if tag.number != index:
            return None
        blob = self._reader.blob(tag)
        _opened(tag, unzipped, blob)
        return blob

    def gradients(self, session: str, chunk: int) -> Array:
        """Float32 `[steps, rows, 6]`. Raises KeyError if there is no such chunk, LogError if it cannot be read."""
        return self._numbers(Tag("gradients", session, chunk))

    def variables(self, session: str, chunk: int) -> Array:
        """Float32 `[steps, variables, 4]`. Raises KeyError if there is no such chunk, LogError if it cannot be read."""
        return self._numbers(Tag("variables", session, chunk))

    def values(self, session: str, step: int, trace: Trace) -> StepValues:
        """What the forward pass of a step of that trace computed. Raises KeyError if that was not measured, LogError if
        it cannot be read."""
        tag, _ = self._stored(Tag("values", session, step))
        blob = self._json(tag)
        with _naming(tag):
            values = read_values(blob, trace)
        if values.step != step:
            raise DamagedRecord(f"damaged log: {tag} holds the values of step {values.step}")
        return values

    def read_ahead(self, tags: Collection[Tag]) -> dict[Tag, Array]:
        """Gradients and variables of chunks in the index, in one request; without those that cannot be read."""
        wanted = {stored: (tag, until) for tag in tags for stored, until in [self._stored(tag)]}
        found = {}
        for stored, array in self._reader.arrays(wanted).items():
            head = self._heads.get(Tag("steps", stored.session, stored.number))
            with suppress(DamagedRecord):
                if head is not None:
                    check_numbers(stored, array, head, _COLUMNS[stored.kind])
                    tag, until = wanted[stored]
                    found[tag] = first_rows(array, len(first_steps(head, until).steps))
        return found

    def _numbers(self, tag: Tag) -> Array:
        tag, until = self._stored(tag)
        steps = Tag("steps", tag.session, tag.number)
        wanted = [tag] if steps in self._heads else [tag, steps]
        found = self._reader.arrays(wanted)
        head = self._heads.get(steps) or read_head(steps, found[steps])
        check_numbers(tag, found[tag], head, _COLUMNS[tag.kind])
        return first_rows(found[tag], len(first_steps(head, until).steps))

    def _parts_of(self, session: str) -> list[_Part]:
        """The parts of the run whose newest session that is; none if it is not the newest."""
        if session not in self._parts:
            with suppress(LogError):
                self.index()
        return self._parts.setdefault(session, [])

    def _trace_tag(self, session: str, index: int) -> Tag:
        """Where a trace of the index is stored."""
        if index < _EARLIER_TRACES:
            return Tag("trace", session, index)
        back = index - index % _EARLIER_TRACES
        part = next((part for part in self._parts_of(session) if part.traces == back), None)
        if part is None:
            raise KeyError(index)
        return Tag("trace", part.session, index - back)

    def _stored(self, tag: Tag) -> tuple[Tag, int | None]:
        """Where a chunk, or the values of a step, are stored; and the step before which they end, if there is one."""
        for part in reversed(self._parts_of(tag.session)):
            if 0 <= part.began <= tag.number:
                return replace(tag, session=part.session), part.until
        return tag, None

    def _read_cost(self, tags: Collection[Tag]) -> Cost | None:
        """The one that was written last, of those that can be read."""
        for newest in sorted(tags, key=lambda tag: tag.number, reverse=True):
            if newest in self._costs:
                return self._costs[newest]
            if newest in self._damaged:
                continue
            found = self._reader.arrays([newest])
            if newest not in found:
                return None
            try:
                self._costs = {newest: read_cost(newest, found[newest])}
            except DamagedRecord as damage:
                self._leave_out(newest, damage)
                continue
            return self._costs[newest]
        return None

    def _json(self, tag: Tag) -> object:
        return _unpacked(tag, self._reader.blob(tag))

    def _read_heads(self, tags: Collection[Tag], cost: Tag | None) -> list[ChunkHead]:
        """The heads of chunks; the cost is read in the same request."""
        unknown = [tag for tag in tags if tag not in self._heads and tag not in self._damaged]
        if unknown:
            with_it = [cost] if cost is not None and cost not in self._costs and cost not in self._damaged else []
            for tag, table in self._reader.arrays([*unknown, *with_it]).items():
                try:
                    if tag.kind == "cost":
                        self._costs = {tag: read_cost(tag, table)}
                    else:
                        self._heads[tag] = read_head(tag, table)
                except DamagedRecord as damage:
                    self._leave_out(tag, damage)
        kept, left_out = in_order([self._heads[tag] for tag in tags if tag in self._heads])
        by_id = {tag.number: tag for tag in tags}
        for head in left_out:
            tag = by_id[head.id]
            self._leave_out(tag, DamagedRecord(f"damaged log: {tag}: these steps were recorded before"))
        return kept

    def _leave_out(self, tag: Tag, damage: DamagedRecord) -> None:
        if tag not in self._damaged:
            self._damaged[tag] = str(damage)
            warn_of(f"{damage}; it is left out", len(self._damaged))


def _unpacked(tag: Tag, packed: bytes) -> object:
    most = MOST_JSON_OF_SESSION if tag.kind == "session" else MOST_JSON
    return _opened(tag, lambda blob: unpack_json(blob, most), packed)


def _opened(tag: Tag, unpack: Callable[[bytes], Read], blob: bytes) -> Read:
    try:
        return unpack(blob)
    except ValueError as damage:
        raise DamagedRecord(
            f"damaged log: {tag} cannot be unpacked ({damage}): copy it again, or record a new run"
        ) from None


@contextmanager
def _naming(tag: Tag) -> Iterator[None]:
    """What is damaged inside is damaged in that record."""
    try:
        yield
    except DamagedRecord as damage:
        raise DamagedRecord(f"{damage} (in {tag})") from damage


def _numbers_of(kind: str, tags: Collection[Tag]) -> list[int]:
    return sorted(tag.number for tag in tags if tag.kind == kind)


def newest_session(tags: Collection[Tag]) -> str:
    """Id of the newest session that has a trace; or of the newest of all if none has one yet."""
    sessions = {tag.session for tag in tags if tag.kind == "session"}
    recorded = sessions & {tag.session for tag in tags if tag.kind == "trace"}
    if not sessions:
        raise LogError(
            "the log has no session: its file was cut off before the recording began, or its beginning is gone"
        )
    return max(recorded or sessions)
