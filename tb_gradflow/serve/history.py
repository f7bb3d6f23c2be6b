"""A recorded run as statistics and diagnoses, with a cache for everything that is slow to compute.

The plugin and `open_log` both read runs through this class; where a run is stored is the business of `store`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from tb_gradflow.analyse.diagnose import diagnose
from tb_gradflow.analyse.graph.topology import Topology
from tb_gradflow.analyse.over_time.alternating import turns_of
from tb_gradflow.analyse.over_time.onset import Onset, ends_with, explained_by, onset_of
from tb_gradflow.analyse.over_time.plateau import rest_of
from tb_gradflow.analyse.over_time.run_context import RunContext
from tb_gradflow.analyse.over_time.unmoved import Piece, standstill_of
from tb_gradflow.errors import LogError
from tb_gradflow.record.codec import encode
from tb_gradflow.record.report import Diagnosis
from tb_gradflow.record.schema import FORMAT, GRADIENT_STATISTICS, VARIABLE_STATISTICS, Session, StepValues, Trace
from tb_gradflow.serve.cache import Cache
from tb_gradflow.serve.collecting import without_collections
from tb_gradflow.serve.readers import side_by_side
from tb_gradflow.store.layout import Tag, pack_json
from tb_gradflow.store.run import Array, ChunkHead, RunIndex, StoredRun, newest_session

Floats = npt.NDArray[np.float32]


class NotRecorded(LogError):
    """The log is valid, but has no such step, chunk, trace or session."""


@dataclass(frozen=True, slots=True)
class Caches:
    """Limits on the memory of all runs together.

    Attributes:
        numbers: Chunks, by bytes: a thousand steps of ResNet50 take 28 MB. Chunks of a longer run are read again for
            each series, which takes a fraction of a second.
        traces: Decoded traces with their topologies. One of 30,000 ops takes about 45 MB.
        diagnoses: Results for a step, about 0.6 KB for each variable: users move the slider back to the same steps.
    """

    numbers: Cache[Floats] = field(default_factory=lambda: Cache(48 * 2**20, cost=lambda array: array.nbytes))
    traces: Cache[tuple[Trace, Topology]] = field(default_factory=lambda: Cache(6))
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

    def refresh(self) -> RunIndex:
        """Reads the log again and returns its index."""
        self._index = self._run.index()
        return self._index

    def index(self) -> RunIndex:
        """The index from the last refresh."""
        return self._index or self.refresh()

    def newest_session(self, tags: Collection[Tag]) -> Session:
        """The id of the session to which an index of these tags would belong."""
        return self._run.session(newest_session(tags))

    def trace(self, session: str, index: int) -> Trace:
        """Raises NotRecorded if there is no such trace."""
        return self._analysed(session, index)[0]

    def trace_json(self, session: str, index: int) -> bytes:
        """The same as gzipped JSON in the current format."""
        try:
            if self._run.session(session).format == FORMAT:
                # Sent as it is stored: decoding thirty thousand ops takes seconds, and the browser decodes them anyway.
                return self._run.trace_blob(session, index)
        except KeyError:
            raise NotRecorded(f"the log has no trace {index} of session {session}") from None
        return pack_json(encode(self.trace(session, index)))

    def gradients(self, session: str, chunk: int) -> Floats:
        """`[steps, rows, statistics]`. Raises NotRecorded if there is no such chunk."""
        return self._numbers(Tag("gradients", session, chunk), self._run.gradients, len(GRADIENT_STATISTICS))

    def variables(self, session: str, chunk: int) -> Floats:
        """`[steps, variables, statistics]`. Raises NotRecorded if there is no such chunk."""
        return self._numbers(Tag("variables", session, chunk), self._run.variables, len(VARIABLE_STATISTICS))

    def values(self, session: str, step: int) -> StepValues | None:
        """The forward values of a step; None if they were not measured."""
        return self._run.values(session, step) if step in self.index().with_values else None

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
            step = index.chunks[-1].steps[-1] if index.chunks else -1
        if index.find(step) is None:
            index = self.refresh()
        found = index.find(step)
        if found is not None:
            key = (self.name, index.session.id, step)
            return self._caches.diagnoses.get(key, lambda: self._diagnose(index.session, *found))
        if index.chunks or step != -1:
            raise NotRecorded(_not_recorded(step, index))
        if not index.traces:
            raise LogError(f"{self.name}: nothing has been recorded yet, the training has not reached its first step")
        trace, topology = self._analysed(index.session.id, index.traces[-1])
        return diagnose(trace, index.session, None, None, (), -1, topology=topology)

    def _diagnose(self, session: Session, head: ChunkHead, at: int) -> Diagnosis:
        trace, topology = self._analysed(session.id, head.trace)
        gradients, variables = self.gradients(session.id, head.id)[at], self.variables(session.id, head.id)[at]
        recorded = (trace, session, gradients, variables, head.losses[at], head.steps[at])
        values = self.values(session.id, head.steps[at])
        pieces = partial(self._pieces_backwards, session, head, at)
        return diagnose(
            *recorded,
            topology=topology,
            values=values,
            context=RunContext(
                onset=self._onset(session, head, at) if ends_with(trace, variables)[0] else None,
                standstill=standstill_of(pieces()),
                rest=rest_of(pieces(), partial(self._beginning, session)),
                turns=turns_of(pieces()),
                began=self._first_losses(session),
            ),
        )

    def _first_losses(self, session: Session) -> dict[str, float]:
        """The losses of the first recorded step, by the name of their target."""
        head = self.index().chunks[0]
        targets = self._analysed(session.id, head.trace)[0].targets
        return {target.name: loss for target, loss in zip(targets, head.losses[0], strict=False)}

    def _onset(self, session: Session, head: ChunkHead, at: int) -> Onset | None:
        """Since when weights are not finite, with the diagnosis of the step in which that began, or of the last step
        before.
        """
        onset = onset_of(self._backwards(session, head, at))
        if onset is None or onset.last < 0:
            return onset
        return explained_by(onset, self.diagnose(onset.last), head.trace)

    def _backwards(self, session: Session, head: ChunkHead, at: int) -> Iterator[tuple[int, bool, bool]]:
        """The recorded steps from one back to the first: step number, and whether weights were finite before and after
        it.
        """
        chunks = self.index().chunks
        for chunk in reversed(chunks[: chunks.index(head) + 1]):
            numbers, trace = self.variables(session.id, chunk.id), self._analysed(session.id, chunk.trace)[0]
            for place in range(at if chunk is head else len(chunk.steps) - 1, -1, -1):
                yield (chunk.steps[place], *ends_with(trace, numbers[place]))

    def _pieces_backwards(self, session: Session, head: ChunkHead, at: int) -> Iterator[Piece]:
        """The recorded steps from one back to the first, chunk by chunk."""
        chunks = self.index().chunks
        for chunk in reversed(chunks[: chunks.index(head) + 1]):
            end = at + 1 if chunk is head else len(chunk.steps)
            trace = self._analysed(session.id, chunk.trace)[0]
            variables = self.variables(session.id, chunk.id)[:end]
            gradients = partial(self._gradients_until, session.id, chunk.id, end)
            yield Piece(trace, variables, gradients, tuple(chunk.steps[:end]))

    def _beginning(self, session: Session) -> Piece:
        """The first recorded steps."""
        head = self.index().chunks[0]
        return next(self._pieces_backwards(session, head, len(head.steps) - 1))

    def _gradients_until(self, session: str, chunk: int, end: int) -> Floats:
        return self.gradients(session, chunk)[:end]

    def _over_steps(self, numbers: Callable[[str, int], Floats], row: int, statistics: int, called: str) -> Floats:
        index = self.index()

        def part(head: ChunkHead) -> tuple[int, Floats]:
            chunk = numbers(index.session.id, head.id)
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
        def analyse() -> tuple[Trace, Topology]:
            with without_collections():
                try:
                    trace = self._run.trace(session, index)
                except KeyError:
                    raise NotRecorded(f"the log has no trace {index} of session {session}") from None
                return trace, Topology(trace)

        return self._caches.traces.get((self.name, session, index), analyse)

    def _numbers(self, tag: Tag, read: Callable[[str, int], Array], statistics: int) -> Floats:
        def numbers() -> Floats:
            try:
                array = read(tag.session, tag.number)
            except KeyError:
                raise NotRecorded(f"the log has no chunk {tag.number} of session {tag.session}") from None
            if len(array.shape) != 3 or not 0 < array.shape[2] <= statistics:
                raise LogError(f"damaged log: {tag} has shape {array.shape}, expected [steps, rows, {statistics}]")
            values = np.frombuffer(array.data, dtype="<f4").reshape(array.shape)
            # Older logs lack the columns that were added later.
            later = statistics - array.shape[2]
            return np.pad(values, ((0, 0), (0, 0), (0, later)), constant_values=np.nan) if later else values

        return self._caches.numbers.get((self.name, tag), numbers)


def _not_recorded(step: int, index: RunIndex) -> str:
    steps = index.steps
    if not steps:
        return f"step {step} was not recorded, and no other step has been yet"
    nearest = min(steps, key=lambda recorded: abs(recorded - step))
    return (
        f"step {step} was not recorded: the log has {len(steps)} steps from {steps[0]} to {steps[-1]}; the "
        f"nearest is {nearest}"
    )
