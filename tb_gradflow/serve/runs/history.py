"""A recorded run as statistics and diagnoses, with a cache for everything that is slow to compute.

The plugin and `open_log` both read runs through this class; where a run is stored is the business of `store`.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from tb_gradflow.analyse.diagnose import diagnose
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.over_time.alternating import turns_of
from tb_gradflow.analyse.over_time.onset import (
    Measured,
    Onset,
    ends_with,
    explained_by,
    is_overflow,
    measured_in,
    onset_of,
)
from tb_gradflow.analyse.over_time.other_gradients import first_gradients_of, gradients_before
from tb_gradflow.analyse.over_time.plateau import rest_of
from tb_gradflow.analyse.over_time.run_context import RunContext, by_names
from tb_gradflow.analyse.over_time.silent_units import silences_of
from tb_gradflow.analyse.over_time.spikes import SpikeSeen, spikes_of
from tb_gradflow.analyse.over_time.unchanged import unchanged_of
from tb_gradflow.analyse.over_time.unmoved import Piece, standstill_of
from tb_gradflow.analyse.over_time.updates import clips_of, long_step_of, moves_of, skipped_of
from tb_gradflow.analyse.over_time.value_courses import value_courses_of
from tb_gradflow.errors import DamagedRecord, LogError
from tb_gradflow.record.codec import encode
from tb_gradflow.record.report import Diagnosis
from tb_gradflow.record.schema import FORMAT, GRADIENT_STATISTICS, VARIABLE_STATISTICS, Session, StepValues, Trace
from tb_gradflow.serve.runs.cache import Cache
from tb_gradflow.serve.runs.fitting import Sizes, gradients_that_fit, unmeasured, variables_that_fit
from tb_gradflow.serve.runs.readers import side_by_side
from tb_gradflow.store.collecting import without_collections
from tb_gradflow.store.layout import Tag, pack_json
from tb_gradflow.store.run import Array, ChunkHead, RunIndex, StoredRun, newest_session
from tb_gradflow.store.warning import warn_of

_AROUND = 5
"""Recorded steps whose median loss is what is usual there."""

_SAID = 3
"""Number of damaged parts that are named; the rest are only counted."""

Floats = npt.NDArray[np.float32]


_COLUMNS = {"gradients": len(GRADIENT_STATISTICS), "variables": len(VARIABLE_STATISTICS)}

_MOST_AHEAD = 5 * 2**20
"""Limit in bytes for numbers that are read in one request, a part of `Caches.numbers` for each thread that analyses."""
_BYTES_OF_ROW = 4 * len(GRADIENT_STATISTICS)

_BAD = [GRADIENT_STATISTICS.index(name) for name in ("nan_count", "inf_count")]


class NotRecorded(LogError):
    """The log is valid, but has no such step, chunk, trace or session."""


def _bytes(array: Floats) -> int:
    # Damaged statistics share a single NaN, however many there are.
    return array.itemsize if 0 in array.strides else array.nbytes


@dataclass(frozen=True, slots=True)
class Caches:
    """Limits on the memory of all runs together.

    Attributes:
        numbers: Chunks, by bytes: a thousand steps of ResNet50 take 28 MB. Chunks of a longer run are read again for
            each series, which takes a fraction of a second.
        traces: Decoded traces with their topologies, by their packed content, its format and their number: about 1.5 KB
            for each op, by which they are counted.
        diagnoses: Results for a step, about 0.6 KB for each variable: users move the slider back to the same steps.
    """

    numbers: Cache[Floats] = field(default_factory=lambda: Cache(48 * 2**20, cost=_bytes))
    traces: Cache[tuple[Trace, Topology]] = field(
        default_factory=lambda: Cache(180_000, cost=lambda analysed: 1 + len(analysed[0].ops))
    )
    diagnoses: Cache[Diagnosis] = field(
        default_factory=lambda: Cache(100_000, cost=lambda diagnosis: 1 + len(diagnosis.variables))
    )


class History:
    """One run.

    Traces, chunks and diagnoses never change once they are recorded; only `refresh` looks for new ones.
    """

    def __init__(self, run: StoredRun, name: str, caches: Caches, *, known: Diagnosis | None = None) -> None:
        """`name` is the displayed name; it is unique among the runs that share `caches`. For a single step that belongs
        to no training, `known` is its diagnosis.
        """
        self.name = name
        self._run = run
        self._caches = caches
        self._known = known
        self._index: RunIndex | None = None
        self._refreshed = -math.inf
        self._changes = 0
        self._unreadable: dict[tuple[str, int], LogError] = {}
        self._contents: dict[tuple[str, int], tuple[bytes, int, int, tuple[Tag, ...], str]] = {}
        self._sizes: dict[tuple[str, int], Sizes] = {}
        self._fitting: set[Tag] = set()
        self._damaged_numbers: set[Tag] = set()
        self._damaged: dict[str, None] = {}

    def refresh(self, tags: Collection[Tag] | None = None, *, within: float = 0.0) -> RunIndex:
        """Reads the log again and returns its index; the first time, of these tags, if they were listed before. Not if
        that was done within so many seconds."""
        if time.monotonic() - self._refreshed < within:
            return self.index()
        index = self._run.index(tags if self._index is None else None)
        self._refreshed = time.monotonic()
        if index != self._index:
            self._index = index
            self._changes += 1
        return self.index()

    def index(self) -> RunIndex:
        """The index from the last refresh."""
        return self._index or self.refresh()

    @property
    def state(self) -> tuple[int, int]:
        """Differs after each change: while it is the same, answers are the same."""
        self.index()
        return self._changes, len(self._damaged)

    @property
    def damaged(self) -> tuple[str, ...]:
        """The parts of the log that cannot be read and are left out."""
        return tuple(dict.fromkeys((*self.index().damaged, *self._damaged)))

    @property
    def damage(self) -> str:
        """The same in a sentence; empty if nothing was found."""
        damaged = self.damaged
        if not damaged:
            return ""
        more = f", and {len(damaged) - _SAID} more like it" if len(damaged) > _SAID else ""
        return f"Part of the log is damaged and was left out: {'; '.join(damaged[:_SAID])}{more}."

    def readable(self) -> RunIndex:
        """The content of the log at the last refresh, without the chunks whose trace cannot be read.

        Raises LogError if that is all of them.
        """
        index = self.index()
        heads = tuple(head for head, _ in self.with_traces(index.session.id, index.chunks))
        if index.chunks and not heads:
            self._analysed(index.session.id, index.chunks[-1].trace)
        if len(heads) == len(index.chunks):
            return index
        traces = tuple(each for each in index.traces if (index.session.id, each) not in self._unreadable)
        return replace(index, chunks=heads, traces=traces)

    def with_traces(self, session: str, heads: Iterable[ChunkHead]) -> Iterator[tuple[ChunkHead, Trace]]:
        """Chunks with their traces, one after the other; those whose trace cannot be read are left out."""
        for head in heads:
            if (session, head.trace) in self._unreadable:
                continue
            try:
                trace = self._analysed(session, head.trace)[0]
            except (DamagedRecord, NotRecorded) as problem:
                self._leave_out(f"{problem}; its steps are left out")
                continue
            yield head, trace

    def newest_session(self, tags: Collection[Tag]) -> Session:
        """The id of the session to which an index of these tags would belong."""
        return self._run.session(newest_session(tags))

    def trace(self, session: str, index: int) -> Trace:
        """Raises NotRecorded if there is no such trace."""
        return self._analysed(session, index)[0]

    def trace_json(self, session: str, index: int) -> bytes:
        """The same as gzipped JSON in the current format."""
        try:
            if self._run.format_of(session, index) == FORMAT:
                # Sent as it is stored: decoding thirty thousand ops takes seconds, and the browser decodes them anyway.
                blob = self._run.trace_blob(session, index)
                if blob is not None:
                    return blob
        except KeyError:
            raise NotRecorded(f"the log has no trace {index} of session {session}") from None
        return pack_json(encode(self.trace(session, index)))

    def gradients(self, session: str, chunk: int) -> Floats:
        """`[steps, rows, statistics]`. Raises NotRecorded if there is no such chunk."""
        return self._numbers(Tag("gradients", session, chunk), self._run.gradients)

    def variables(self, session: str, chunk: int) -> Floats:
        """`[steps, variables, statistics]`. Raises NotRecorded if there is no such chunk."""
        return self._numbers(Tag("variables", session, chunk), self._run.variables)

    def measured(self, session: str, head: ChunkHead) -> Floats:
        """The same as `gradients`, but checked against the trace: damaged values are NaN, as if they had not been
        measured."""
        return self._that_fits(Tag("gradients", session, head.id), head, self.gradients, gradients_that_fit)

    def moved(self, session: str, head: ChunkHead) -> Floats:
        """The same for `variables`."""
        return self._that_fits(Tag("variables", session, head.id), head, self.variables, variables_that_fit)

    def losses(self, session: str, head: ChunkHead, at: int) -> tuple[float, ...]:
        """The value of each target of the trace; none where the chunk has another number of them."""
        losses, expected = head.losses[at], self._sizes_of(session, head.trace).targets
        if len(losses) == expected:
            return losses
        tag = Tag("steps", session, head.id)
        self._leave_out(f"damaged log: {tag} has {len(losses)} losses, but its trace has {expected}")
        return ()

    def values(self, session: str, step: int, trace: Trace) -> StepValues | None:
        """The forward values of a step of that trace; None if they were not measured, or are damaged."""
        if step not in self.index().with_values:
            return None
        try:
            return self._run.values(session, step, trace)
        except DamagedRecord as damage:
            self._leave_out(str(damage))
            return None

    def _tried(self, session: str) -> Iterator[tuple[Trace, StepValues]]:
        """The traces of the steps of which more was measured than gradients, and what."""
        index = self.index()
        for step in sorted(index.with_values):
            found = index.find(step)
            with contextlib.suppress(LogError):  # damage is told where the step is read
                if found is not None:
                    trace, _ = self._analysed(session, found[0].trace)
                    known = self.values(session, step, trace)
                    if known is not None:
                        yield trace, known

    def series(self, row: int) -> Floats:
        """One row of the gradients over all steps, `[steps, statistics]`; NaN if the trace has no such row.

        Raises NotRecorded if no trace has it.
        """
        return self._over_steps(self.gradients, row, len(GRADIENT_STATISTICS), "row")

    def weights(self, variable: int) -> Floats:
        """One variable's weight and update norms over all steps; NaN if the trace has no such variable.

        Raises NotRecorded if no trace has it.
        """
        return self._over_steps(self.variables, variable, len(VARIABLE_STATISTICS), "variable")

    def diagnose(self, step: int | None = None) -> Diagnosis:
        """The diagnosis of `step`; by default, of the last recorded step, or of the structure alone if no step was
        completed.
        """
        if self._known is not None:
            return self._known
        index = self.index() if step is not None else self.refresh()
        if step is None:
            step = self.last(index)
        if index.find(step) is None:
            index = self.refresh()
        found = index.find(step)
        if found is not None:
            key = (self.name, index.session.id, step, index.tried)
            return self._caches.diagnoses.get(key, lambda: self._diagnose(index.session, *found))
        if index.chunks or step != -1:
            raise NotRecorded(_not_recorded(step, index))
        if not index.traces:
            nothing = "nothing has been recorded yet, the training has not reached its first step"
            raise LogError(f"{self.name}: {'; '.join(index.damaged[:1]) or nothing}")
        trace, topology = self._analysed(index.session.id, index.traces[-1])
        return diagnose(trace, index.session, None, None, (), -1, topology=topology)

    def last(self, index: RunIndex) -> int:
        """The last step that can be judged; the last of all if none can; -1 if there is none."""
        readable = (head for head, _ in self.with_traces(index.session.id, reversed(index.chunks)))
        head = next(readable, index.chunks[-1] if index.chunks else None)
        return -1 if head is None else head.steps[-1]

    def _diagnose(self, session: Session, head: ChunkHead, at: int) -> Diagnosis:
        trace, topology = self._analysed(session.id, head.trace)
        self._read_ahead(session.id, head)
        gradients, variables = self.measured(session.id, head)[at], self.moved(session.id, head)[at]
        losses = self.losses(session.id, head, at)
        recorded = (trace, session, gradients, variables, losses, head.steps[at])
        is_finite = _is_finite(gradients[self._sizes_of(session.id, head.trace).statistics], losses)
        values = self.values(session.id, head.steps[at], trace)
        pieces = partial(self._pieces_backwards, session, head, at)
        tried = list(self._tried(session.id))
        same = [known for of, known in reversed(tried) if of.index == trace.index]
        searched = [(known.step, each) for _, known in tried for each in known.line_searches]
        return diagnose(
            *recorded,
            topology=topology,
            values=values,
            context=RunContext(
                onset=self._onset(session, head, at) if ends_with(trace, variables)[0] else None,
                standstill=standstill_of(pieces()),
                rest=rest_of(pieces(), partial(self._beginning, session)),
                turns=turns_of(pieces()),
                silences=silences_of(pieces()),
                unchanged=unchanged_of(pieces()),
                value_courses=lambda: value_courses_of(pieces()),
                began=self._first_losses(session),
                usual_loss=partial(self._usual_loss, session, head, at),
                first_gradients=lambda: first_gradients_of(self._beginning(session)),
                gradients_before=lambda: gradients_before(pieces()),
                influences={key: each for of, known in tried for key, each in by_names(of, known.influences)},
                reactions={of.ops[each.op].name: each for of, known in tried for each in known.reactions},
                interventions=next((known.interventions for known in same if known.interventions), ()),
                slopes=next((known.slopes for known in same if known.slopes), ()),
                kept_numbers=next((known.kept_numbers for known in same if known.kept_numbers), ()),
                line_search=searched[-1] if searched else None,
                too_long=next((each for each in searched if each[1].better is not None), None),
                long_step=lambda: long_step_of(self._until(session, head, at)),
                spikes=tuple(self._spikes(session, tried, head.steps[at])),
                clips=clips_of(pieces()),
                moves=lambda: moves_of(pieces()),
                skipped=skipped_of(pieces()),
                not_moved=next((known.not_moved for _, known in tried if known.not_moved), ""),
                broke_before=None if is_finite or values is not None else self._broke_before(head, at, tried),
                raised=self._raised_after(session, head, at),
            ),
        )

    def _broke_before(self, head: ChunkHead, at: int, tried: list[tuple[Trace, StepValues]]) -> Measured | None:
        """The last step before this one of which the forward pass was measured, if it was not finite."""
        steps = [known.step for _, known in tried if known.values and known.step < head.steps[at]]
        return measured_in(self.diagnose(steps[-1]), head.trace) if steps else None

    def _until(
        self, session: Session, head: ChunkHead, at: int
    ) -> Iterator[tuple[int, Trace, Floats, Sequence[float]]]:
        """The recorded steps up to one: number, trace, what moved, and losses."""
        for chunk, trace in reversed([*self._chunks_backwards(session, head)]):
            moved = self.moved(session.id, chunk)
            for place, step in enumerate(chunk.steps[: at + 1 if chunk is head else None]):
                yield step, trace, moved[place], self.losses(session.id, chunk, place)

    def _raised_after(self, session: Session, head: ChunkHead, at: int) -> Trace | None:
        """The trace of a step that has raised, if this is the last recorded step: no step of that trace is recorded."""
        index = self.index()
        is_last = bool(index.chunks) and index.chunks[-1].steps[-1] == head.steps[at]
        last = index.traces[-1] if index.traces else -1
        if not is_last or last < 0 or any(each.trace == last for each in index.chunks):
            return None
        trace, _ = self._analysed(session.id, last)
        return trace if trace.raised else None

    def _spikes(self, session: Session, tried: list[tuple[Trace, StepValues]], until: int) -> Iterator[SpikeSeen]:
        """The steps until this one that were not usual."""
        spiked = [each for each in tried if each[1].spike is not None and each[1].step <= until]
        if not spiked:
            return
        first = min(values.step for _, values in spiked)
        heads = [each for each in self.index().chunks if each.steps[-1] > first]
        losses = [
            (step, trace, self.losses(session.id, head, at))
            for head, trace in self.with_traces(session.id, heads)
            for at, step in enumerate(head.steps)
            if first < step <= until
        ]
        yield from spikes_of(spiked, losses)

    def _read_ahead(self, session: str, head: ChunkHead) -> None:
        """Reads the numbers of the chunks up to one in a single request, as far as they are not large: each request
        to TensorBoard's fast loader takes about 40 ms."""
        wanted: list[Tag] = []
        left = _MOST_AHEAD
        chunks = self.index().chunks
        for chunk in reversed(chunks[: chunks.index(head) + 1]):
            sizes = self._sizes.get((session, chunk.trace))
            if sizes is None:
                continue
            tags = Tag("variables", session, chunk.id), Tag("gradients", session, chunk.id)
            for tag, rows in zip(tags, (sizes.variables, sizes.rows), strict=True):
                left -= _BYTES_OF_ROW * rows * len(chunk.steps)
                if left >= 0 and self._caches.numbers.find((self.name, tag)) is None:
                    wanted.append(tag)
        if len(wanted) > 1:
            for tag, array in self._run.read_ahead(wanted).items():
                self._caches.numbers.get((self.name, tag), partial(_floats, array, _COLUMNS[tag.kind]))

    def _first_losses(self, session: Session) -> dict[str, float]:
        """The losses of the first recorded step, by the names of their targets."""
        head, trace = next(self.with_traces(session.id, self.index().chunks))
        losses = self.losses(session.id, head, 0)
        return {target.name: loss for target, loss in zip(trace.targets, losses, strict=False)}

    def _usual_loss(self, session: Session, head: ChunkHead, at: int, target: str, step: int) -> float:
        """The median of the losses of the recorded steps around a step, until the one in question: batches differ."""
        known = [
            (abs(number - step), loss)
            for chunk, trace in self._chunks_backwards(session, head)
            for place, number in enumerate(chunk.steps[: at + 1 if chunk is head else None])
            for each, loss in zip(trace.targets, self.losses(session.id, chunk, place), strict=False)
            if each.name == target
        ]
        return float(np.median([loss for _, loss in sorted(known)[:_AROUND]])) if known else np.nan

    def _onset(self, session: Session, head: ChunkHead, at: int) -> Onset | None:
        """Since when weights are not finite, with the diagnosis of the step in which that began, or of the last step
        before.
        """
        onset = onset_of(self._backwards(session, head, at))
        if onset is None or onset.last < 0:
            return onset
        told = explained_by(onset, self.diagnose(onset.last), head.trace)
        if not is_overflow(told):
            return told
        before = next((step for step, *_ in self._backwards(session, head, at) if step < onset.last), None)
        if before is None:
            return told
        grown = explained_by(Onset(onset.last, before, recorded=False), self.diagnose(before), head.trace)
        return grown if grown.findings else told

    def _backwards(self, session: Session, head: ChunkHead, at: int) -> Iterator[tuple[int, bool, bool]]:
        """The recorded steps from one on back to the first: number, and whether weights were finite around it."""
        for chunk, trace in self._chunks_backwards(session, head):
            numbers = self.moved(session.id, chunk)
            for place in range(at if chunk is head else len(chunk.steps) - 1, -1, -1):
                yield (chunk.steps[place], *ends_with(trace, numbers[place]))

    def _pieces_backwards(self, session: Session, head: ChunkHead, at: int) -> Iterator[Piece]:
        """The recorded steps from one on back to the first, chunk by chunk."""
        for chunk, trace in self._chunks_backwards(session, head):
            end = at + 1 if chunk is head else len(chunk.steps)
            variables = self.moved(session.id, chunk)[:end]
            gradients = partial(self._gradients_until, session.id, chunk, end)
            yield Piece(trace, variables, gradients, tuple(chunk.steps[:end]))

    def _chunks_backwards(self, session: Session, head: ChunkHead) -> Iterator[tuple[ChunkHead, Trace]]:
        chunks = self.index().chunks
        return self.with_traces(session.id, reversed(chunks[: chunks.index(head) + 1]))

    def _beginning(self, session: Session) -> Piece:
        """The first recorded steps."""
        head, _ = next(self.with_traces(session.id, self.index().chunks))
        return next(self._pieces_backwards(session, head, len(head.steps) - 1))

    def _gradients_until(self, session: str, head: ChunkHead, end: int) -> Floats:
        return self.measured(session, head)[:end]

    def _over_steps(self, numbers: Callable[[str, int], Floats], row: int, statistics: int, called: str) -> Floats:
        index = self.index()

        def part(head: ChunkHead) -> tuple[int, Floats]:
            try:
                chunk = numbers(index.session.id, head.id)
            except DamagedRecord as damage:
                self._leave_out(str(damage))
                return 0, unmeasured(len(head.steps), 1, statistics)[:, 0]
            if row < chunk.shape[1]:
                # A copy, so that the chunk itself can be freed.
                return chunk.shape[1], np.array(chunk[:, row, :])
            return chunk.shape[1], np.full((chunk.shape[0], statistics), np.nan, np.float32)

        parts = side_by_side(part, index.chunks)
        most = max((rows for rows, _ in parts), default=0)
        if parts and row >= most:
            raise NotRecorded(f"the log has no {called} {row}: it has {most}, numbered from 0")
        return np.concatenate([each for _, each in parts]) if parts else np.empty((0, statistics), np.float32)

    def _analysed(self, session: str, index: int) -> tuple[Trace, Topology]:
        if (session, index) in self._unreadable:
            raise self._unreadable[session, index]
        known = self._contents.get((session, index))
        tried = self._run.tried_in(session, index)
        if known is not None and tried != known[3]:
            known = None
        analysed = self._caches.traces.find(known) if known is not None else None
        if analysed is not None:
            return analysed
        try:
            packed = self._run.packed_trace(session, index)
        except KeyError:
            raise NotRecorded(f"the log has no trace {index} of session {session}") from None

        def analyse() -> tuple[Trace, Topology]:
            with without_collections():
                trace = self._run.trace(session, index, packed)
                return trace, Topology(trace)

        # The runs of a sweep often have the same trace, which then is decoded once.
        format_of = self._run.format_of(session, index)
        content = hashlib.blake2b(packed, digest_size=16).digest(), format_of, index, tried, self.name * bool(tried)
        try:
            analysed = self._caches.traces.get(content, analyse)
        except DamagedRecord as damage:
            self._unreadable[session, index] = damage
            raise
        self._contents[session, index] = content
        self._sizes[session, index] = Sizes.of(analysed[0])
        return analysed

    def _sizes_of(self, session: str, trace: int) -> Sizes:
        if (session, trace) not in self._sizes:
            self._analysed(session, trace)
        return self._sizes[session, trace]

    def _that_fits(
        self,
        tag: Tag,
        head: ChunkHead,
        read: Callable[[str, int], Floats],
        fit: Callable[[Floats, Sizes], tuple[Floats, str]],
    ) -> Floats:
        if tag in self._fitting:
            return read(tag.session, tag.number)

        def fitted() -> tuple[Floats, str]:
            sizes = self._sizes_of(tag.session, head.trace)
            try:
                numbers, problem = fit(read(tag.session, tag.number), sizes)
            except DamagedRecord as damage:
                rows, columns = (
                    (sizes.rows, len(GRADIENT_STATISTICS))
                    if tag.kind == "gradients"
                    else (sizes.variables, len(VARIABLE_STATISTICS))
                )
                return unmeasured(len(head.steps), rows, columns), str(damage)
            return numbers, problem and f"damaged log: {tag} {problem}"

        if tag not in self._damaged_numbers:
            numbers, problem = fitted()
            if not problem:
                self._fitting.add(tag)
                return numbers
            self._damaged_numbers.add(tag)
            self._leave_out(problem)
        return self._caches.numbers.get((self.name, tag, "fitted"), lambda: fitted()[0])

    def _leave_out(self, problem: str) -> None:
        if problem not in self._damaged:
            self._damaged[problem] = None
            warn_of(f"{self.name}: {problem}", len(self._damaged))

    def _numbers(self, tag: Tag, read: Callable[[str, int], Array]) -> Floats:
        def numbers() -> Floats:
            try:
                array = read(tag.session, tag.number)
            except KeyError:
                raise NotRecorded(f"the log has no chunk {tag.number} of session {tag.session}") from None
            return _floats(array, _COLUMNS[tag.kind])

        return self._caches.numbers.get((self.name, tag), numbers)


def _floats(array: Array, statistics: int) -> Floats:
    """`[steps, rows, statistics]`, NaN in columns that older logs lack."""
    values = np.frombuffer(array.data, dtype="<f4").reshape(array.shape)
    later = statistics - array.shape[2]
    return np.pad(values, ((0, 0), (0, 0), (0, later)), constant_values=np.nan) if later else values


def _is_finite(gradients: Floats, losses: Iterable[float]) -> bool:
    """Whether the losses and gradients of a step are finite."""
    return bool(np.isfinite(tuple(losses)).all()) and not (gradients[:, _BAD] > 0).any()


def _not_recorded(step: int, index: RunIndex) -> str:
    steps = index.steps
    if not steps:
        return f"step {step} was not recorded, and no other step has been yet"
    nearest = min(steps, key=lambda recorded: abs(recorded - step))
    return (
        f"step {step} was not recorded: the log has {len(steps)} steps from {steps[0]} to {steps[-1]}; the "
        f"nearest is {nearest}"
    )
