from __future__ import annotations

import struct
from dataclasses import replace
from itertools import pairwise

import pytest
from tensorboard.compat.proto.event_pb2 import Event

from tb_gradflow.record.schema import StepRecord
from tb_gradflow.store.layout import event_file_path, parse_tag
from tb_gradflow.store.writer import CHUNK_SECONDS, CHUNK_STEPS, LogWriter
from tests.store.samples import session, step, trace


class Memory:
    """A sink that keeps what it is given, and a clock that stands still until it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.flushed = 0
        self.closed = False
        self.now = 100.0

    def write(self, record: bytes) -> None:
        self.events.append(Event.FromString(record))

    def flush(self) -> None:
        self.flushed = len(self.events)

    def close(self) -> None:
        self.closed = True

    def chunks(self) -> list[list[int]]:
        """Steps of each chunk that was written and flushed."""
        out = []
        for event in self.events[: self.flushed]:
            for value in event.summary.value:
                tag = parse_tag(value.tag)
                assert tag is not None
                if tag.kind == "steps":
                    columns = value.tensor.tensor_shape.dim[1].size
                    rows = struct.iter_unpack(f"<{columns}d", value.tensor.tensor_content)
                    out.append([int(row[0]) for row in rows])
        return out


def writer_to(memory: Memory, cap_bytes: int = 2**30) -> LogWriter:
    writer = LogWriter(session(), memory, cap_bytes=cap_bytes, clock=lambda: memory.now)
    writer.write_trace(trace())
    return writer


def test_a_file_begins_with_its_version_and_its_session() -> None:
    memory = Memory()

    writer_to(memory)

    version, first, second = memory.events
    assert version.file_version == "brain.Event:2"
    assert [value.tag for value in first.summary.value] == ["gradflow/session/1700000000000"]
    assert [value.tag for value in second.summary.value] == ["gradflow/trace/1700000000000/0"]
    assert memory.flushed == 3


def test_the_very_first_step_is_written_at_once_and_the_next_in_chunks() -> None:
    memory = Memory()
    writer = writer_to(memory)

    for number in range(2 * CHUNK_STEPS + 1):
        writer.write_step(step(number))

    assert memory.chunks() == [[0], list(range(1, CHUNK_STEPS + 1)), list(range(CHUNK_STEPS + 1, 2 * CHUNK_STEPS + 1))]


def test_a_slow_training_is_written_every_few_seconds() -> None:
    memory = Memory()
    writer = writer_to(memory)
    writer.write_step(step(0))

    for number in range(1, 6):
        memory.now += CHUNK_SECONDS / 2
        writer.write_step(step(number))

    assert memory.chunks() == [[0], [1, 2], [3, 4]]


def test_a_long_training_is_written_more_seldom() -> None:
    """After five days a chunk spans seven minutes: a thousandth of the time, so that their number stays bounded."""
    memory = Memory()
    writer = writer_to(memory)
    writer.write_step(step(0))
    memory.now += 5 * 24 * 3600
    writer.write_step(step(1))

    for number in range(2, 12):
        memory.now += 60
        writer.write_step(step(number))

    assert memory.chunks() == [[0], [1], [2, 3, 4, 5, 6, 7, 8, 9]]


def test_a_chunk_holds_steps_of_one_trace() -> None:
    memory = Memory()
    writer = writer_to(memory)
    writer.write_trace(trace(1))

    for number, of in enumerate([0, 0, 0, 1, 1, 0]):
        writer.write_step(step(number, of))
    writer.flush()

    assert memory.chunks() == [[0], [1, 2], [3, 4], [5]]


def test_closing_writes_what_is_left() -> None:
    memory = Memory()

    with writer_to(memory) as writer:
        writer.write_step(step(0))
        writer.write_step(step(7))

    assert memory.chunks() == [[0], [7]]
    assert memory.closed


def test_a_trace_is_written_once() -> None:
    memory = Memory()
    writer = writer_to(memory)

    writer.write_trace(trace())

    assert len(memory.events) == 3


def test_a_full_log_grows_ever_more_slowly() -> None:
    memory = Memory()
    chunk_bytes = 8_000  # about what 32 steps of the sample take
    writer = writer_to(memory, cap_bytes=10 * chunk_bytes)

    for number in range(20_000):
        writer.write_step(step(number))
    writer.close()

    steps = [number for chunk in memory.chunks() for number in chunk]
    gaps = {later - earlier for earlier, later in pairwise(steps)}
    written = sum(event.ByteSize() for event in memory.events)
    assert steps[:100] == list(range(100))
    assert {1, 2, 4, 8} <= gaps
    assert gaps <= {2**power for power in range(20)}
    assert steps[-1] > 19_000
    # Doubling the gap each half cap: 20,000 steps of 250 bytes are 5 MB, and six times the cap would hold 2,000.
    assert written < 6 * 10 * chunk_bytes


@pytest.mark.parametrize(
    ("record", "complaint"),
    [
        (step(4), "steps must increase strictly, got 4 after 5"),
        (step(5), "steps must increase strictly, got 5 after 5"),
        (step(6, trace=3), "step 6 belongs to trace 3, which was not written"),
        (replace(step(6), losses=()), "step 6 has 0 losses for 1 targets"),
        (replace(step(6), variables=b""), "step 6: the statistics do not match the 2 variables of its trace"),
    ],
)
def test_a_step_that_does_not_fit_is_refused_and_the_log_stays_whole(record: StepRecord, complaint: str) -> None:
    memory = Memory()
    writer = writer_to(memory)
    writer.write_step(step(5))

    with pytest.raises(ValueError, match=complaint):
        writer.write_step(record)
    writer.write_step(step(6))
    writer.flush()

    assert memory.chunks() == [[5], [6]]


def test_steps_of_one_chunk_must_have_the_same_rows() -> None:
    memory = Memory()
    writer = writer_to(memory)
    writer.write_step(step(0))
    writer.write_step(step(1))

    with pytest.raises(ValueError, match="step 2: 24 bytes of gradients, expected 72"):
        writer.write_step(replace(step(2), gradients=b"\0" * 24))


def test_files_sort_by_the_time_they_were_begun() -> None:
    """TensorBoard's Python loader reads only the last file of a directory: a second fit may follow within a second."""
    names = [event_file_path("logs") for _ in range(50)]

    assert names == sorted(set(names))


def test_workers_that_begin_at_once_do_not_write_to_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 1_700_000_000_000_000_000)

    assert len({event_file_path("logs") for _ in range(50)}) == 50


def test_what_a_sink_raises_goes_to_the_caller() -> None:
    class Full(Memory):
        def write(self, record: bytes) -> None:
            raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        LogWriter(session(), Full())


def test_what_waits_is_due_after_a_while() -> None:
    memory = Memory()
    writer = writer_to(memory)

    def is_due_after(seconds: float) -> bool:
        memory.now += seconds
        return writer.is_due

    writer.write_step(step(0))
    assert not is_due_after(0), "the first step is written at once"
    writer.write_step(step(1))
    assert not is_due_after(CHUNK_SECONDS - 1)
    assert is_due_after(1)
    writer.flush()

    assert not is_due_after(100)
    assert memory.chunks() == [[0], [1]]


class InterruptedOnce(Memory):
    """An interrupt arrives in the first write after `is_next` is set."""

    is_next = False

    def write(self, record: bytes) -> None:
        if self.is_next:
            self.is_next = False
            raise KeyboardInterrupt
        super().write(record)


def test_steps_whose_writing_is_interrupted_are_written_the_next_time() -> None:
    memory = InterruptedOnce()
    writer = writer_to(memory)
    writer.write_step(step(0))
    writer.write_step(step(1))

    memory.is_next = True
    with pytest.raises(KeyboardInterrupt):
        writer.flush()

    writer.close()
    assert memory.chunks() == [[0], [1]]


class FlushedInWrites(Memory):
    """Flushes its writer in each write, as a `tf.summary` writer does."""

    writer: LogWriter | None = None

    def write(self, record: bytes) -> None:
        super().write(record)
        if self.writer is not None:
            self.writer.flush()


def test_a_sink_that_flushes_the_writer_while_it_is_written_to_gets_each_step_once() -> None:
    memory = FlushedInWrites()
    writer = memory.writer = writer_to(memory)

    writer.write_step(step(0))
    writer.write_step(step(1))
    writer.close()

    assert memory.chunks() == [[0], [1]]
