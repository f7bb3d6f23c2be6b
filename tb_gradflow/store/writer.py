"""Writes one session to one event file: collects steps into chunks, and limits the size of the file.

It knows only records and events. The sink decides where the bytes go: the recorder passes a `tf.io.TFRecordWriter`,
whose checksums are computed in C++ and which writes to any file system; `RecordFile` works without TensorFlow.
Exceptions of the sink are passed to the caller.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol

from tb_gradflow.record.codec import encode
from tb_gradflow.record.cost import Cost
from tb_gradflow.record.schema import (
    GRADIENT_STATISTICS,
    VARIABLE_STATISTICS,
    Session,
    StepRecord,
    Trace,
    Trials,
)
from tb_gradflow.store.crc32c import masked_crc32c
from tb_gradflow.store.event_file import FOOTER, HEADER
from tb_gradflow.store.layout import (
    COST_COLUMNS,
    FIXED_STEP_COLUMNS,
    Tag,
    blob_value,
    event,
    float32_value,
    float64_value,
    pack_json,
    version_event,
)
from tb_gradflow.store.messages import Event

CHUNK_STEPS = 32
CHUNK_SECONDS = 5.0
VOLUME_CAP_BYTES = 256 * 2**20

_FLOAT32_BYTES = 4


class RecordSink(Protocol):
    """A file of TFRecords. `tf.io.TFRecordWriter` is one."""

    def write(self, record: bytes) -> object: ...

    def flush(self) -> object: ...

    def close(self) -> object: ...


class RecordFile:
    """A sink for a local path that needs no TensorFlow; missing directories are created."""

    def __init__(self, path: str) -> None:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        # Never an existing file: appending to one would put a second version record into its middle.
        self._file = open(path, "xb")

    def write(self, record: bytes) -> None:
        length = len(record).to_bytes(8, "little")
        header = HEADER.pack(len(record), masked_crc32c(length))
        self._file.write(header + record + FOOTER.pack(masked_crc32c(record)))

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class LogWriter:
    """One session in one event file.

    A chunk is written when it holds `CHUNK_STEPS` steps, when the trace changes, on `flush`, and when the last write is
    `CHUNK_SECONDS` ago (or a thousandth of the time since the beginning, if that is longer); `is_due` says so while no
    step comes. So a short run is visible at once, and a long one does not consist of thousands of chunks. The very
    first step is written immediately.

    It keeps one in `stride` of the steps that it gets. At `cap_bytes` of output it is full, and the caller should start
    a new file, see `store.thinning`. If it gets more steps nevertheless, it keeps every second step from there on, and
    halves this number again after each further half of the cap.
    """

    def __init__(
        self,
        session: Session,
        sink: RecordSink,
        *,
        cap_bytes: int = VOLUME_CAP_BYTES,
        stride: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._sink = sink
        self._cap_bytes = cap_bytes
        self.stride = stride
        self._clock = clock
        self._began = self._wrote = clock()
        self._bytes = 0
        self._traces: dict[int, Trace] = {}
        self._offered = 0
        self._tried = 0
        self._last_step = -1
        self._buffer: list[StepRecord] = []
        self._cost: Cost | None = None
        began = int(session.id) / 1000
        self._write(version_event(began))
        self._write(event([blob_value(Tag("session", session.id, -1), pack_json(encode(session)))], 0, began))
        self._sink.flush()

    def write_trace(self, trace: Trace) -> None:
        """Must be called before the first step of that trace; a trace is written only once."""
        if trace.index in self._traces:
            return
        self._traces[trace.index] = trace
        tag = Tag("trace", self._session.id, trace.index)
        self._write(event([blob_value(tag, pack_json(encode(trace)))], 0, time.time()))
        self._sink.flush()

    def write_trials(self, trials: Trials) -> None:
        """What was tried in the session when it had ended."""
        tag = Tag("trials", self._session.id, self._tried)
        self._tried += 1
        self._write(event([blob_value(tag, pack_json(encode(trials)))], max(self._last_step, 0), time.time()))

    def write_step(self, record: StepRecord) -> None:
        """Steps must increase strictly, and the trace must have been written."""
        self._check(record)
        self._last_step = record.step
        position = self._offered
        self._offered += 1
        if position % self._stride_now() == 0:
            self._keep(record, at_once=position == 0)

    def keep_step(self, record: StepRecord) -> None:
        """The same for a step that is kept regardless of the stride."""
        self._check(record)
        self._last_step = record.step
        self._keep(record)

    @property
    def is_full(self) -> bool:
        """Whether the cap is reached."""
        return self._bytes >= self._cap_bytes

    def _keep(self, record: StepRecord, *, at_once: bool = False) -> None:
        if self._buffer and self._buffer[0].trace != record.trace:
            self._write_chunk()
        if record.values is not None:
            tag = Tag("values", self._session.id, record.step)
            values = blob_value(tag, pack_json(encode(record.values)))
            self._write(event([values], record.step, record.wall_time))
        self._buffer.append(record)
        if at_once or len(self._buffer) >= CHUNK_STEPS or self._is_time():
            self._write_chunk()

    @property
    def is_due(self) -> bool:
        """Whether something has waited long enough to be written."""
        return bool(self._buffer) and self._is_time()

    def write_cost(self, cost: Cost) -> None:
        """Sets the cost of recording so far. The last value counts; at most one is written for each chunk."""
        self._cost = cost

    def flush(self) -> None:
        """Writes everything to the file before it returns."""
        self._write_chunk()
        self._sink.flush()

    def close(self) -> None:
        self.flush()
        self._sink.close()

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _check(self, record: StepRecord) -> None:
        if record.step <= self._last_step:
            raise ValueError(f"steps must increase strictly, got {record.step} after {self._last_step}")
        trace = self._traces.get(record.trace)
        if trace is None:
            raise ValueError(
                f"step {record.step} belongs to trace {record.trace}, which was not written: write that first"
            )
        if len(record.losses) != len(trace.targets):
            raise ValueError(f"step {record.step} has {len(record.losses)} losses for {len(trace.targets)} targets")
        if len(record.variables) != len(trace.variables) * len(VARIABLE_STATISTICS) * _FLOAT32_BYTES:
            raise ValueError(
                f"step {record.step}: the statistics do not match the {len(trace.variables)} variables of its trace"
            )
        if self._buffer and self._buffer[0].trace == record.trace:
            expected = len(self._buffer[0].gradients)
            if len(record.gradients) != expected:
                raise ValueError(f"step {record.step}: {len(record.gradients)} bytes of gradients, expected {expected}")

    def _stride_now(self) -> int:
        over = self._bytes - self._cap_bytes
        return self.stride * (1 if over < 0 else int(2 ** (1 + over // max(1, self._cap_bytes // 2))))

    def _is_time(self) -> bool:
        now = self._clock()
        return now - self._wrote >= max(CHUNK_SECONDS, (now - self._began) / 1000)

    def _write_chunk(self) -> None:
        steps = self._buffer
        if not steps:
            return
        try:
            # Emptied first: a sink that is flushed during a write requests everything in the buffer.
            self._buffer = []
            self._write(chunk_event(self._session.id, steps))
        except Exception:
            raise
        except BaseException:
            # After an interrupt, the steps stay in the buffer for the next write.
            if self._buffer is not steps:
                self._buffer = [*steps, *self._buffer]
            raise
        if self._cost is not None:
            self._write(cost_event(self._session.id, steps[-1], self._cost))
        self._wrote = self._clock()
        self._sink.flush()

    def _write(self, record: Event) -> None:
        data = record.SerializeToString()
        self._sink.write(data)
        self._bytes += len(data)


def cost_event(session: str, after: StepRecord, cost: Cost) -> Event:
    """The cost of recording up to the step `after`."""
    numbers = [float(getattr(cost, column)) for column in COST_COLUMNS]
    value = float64_value(
        Tag("cost", session, after.step), (1, len(numbers)), struct.pack(f"<{len(numbers)}d", *numbers)
    )
    return event([value], after.step, after.wall_time)


def chunk_event(session: str, steps: Sequence[StepRecord]) -> Event:
    """Steps of one trace as one event of three tensors, under tags that no other chunk has."""
    first, last = steps[0], steps[-1]
    columns = FIXED_STEP_COLUMNS + len(first.losses)
    table = [number for s in steps for number in (s.step, s.wall_time, s.trace, *s.losses)]
    rows = len(first.gradients) // (len(GRADIENT_STATISTICS) * _FLOAT32_BYTES)
    variables = len(first.variables) // (len(VARIABLE_STATISTICS) * _FLOAT32_BYTES)
    # The steps come last: a reader that sees them while TensorBoard is still loading also finds the statistics.
    values = [
        float32_value(
            Tag("gradients", session, first.step),
            (len(steps), rows, len(GRADIENT_STATISTICS)),
            b"".join(s.gradients for s in steps),
        ),
        float32_value(
            Tag("variables", session, first.step),
            (len(steps), variables, len(VARIABLE_STATISTICS)),
            b"".join(s.variables for s in steps),
        ),
        float64_value(Tag("steps", session, first.step), (len(steps), columns), struct.pack(f"<{len(table)}d", *table)),
    ]
    return event(values, last.step, last.wall_time)
