"""A step that was never in a file is read like one that was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import tb_gradflow
from tb_gradflow.record.schema import OpValue, StepValues
from tb_gradflow.store.memory import MemoryReader
from tb_gradflow.store.run import StoredRun
from tests.store.samples import open_writer, session, step, trace

VALUES = StepValues(7, 4, (OpValue(4, 0, -1, (2, 3), -1.0, 2.0, 0, 3, 0, 0, 0),))


def test_it_is_the_same_as_in_a_log(tmp_path: Path) -> None:
    record = replace(step(7), values=VALUES)
    with open_writer(tmp_path) as writer:
        writer.write_trace(trace())
        writer.write_step(record)
    in_file = tb_gradflow.open_log(tmp_path).recorded._run
    in_memory = StoredRun(MemoryReader(session(), trace(), record))

    assert replace(in_memory.index(), chunks=()) == replace(in_file.index(), chunks=())
    assert in_memory.index().steps == in_file.index().steps == (7,)
    for read in ("gradients", "variables"):
        assert getattr(in_memory, read)(session().id, 7) == getattr(in_file, read)(session().id, 7)
    assert in_memory.trace(session().id, 0) == in_file.trace(session().id, 0)
    assert in_memory.values(session().id, 7, trace()) == in_file.values(session().id, 7, trace()) == VALUES


def test_a_step_that_was_not_completed_has_a_structure() -> None:
    run = StoredRun(MemoryReader(session(), trace(), None))

    assert run.index().steps == ()
    assert run.index().traces == (0,)
    assert run.index().damaged == ()


def test_a_step_without_forward_values_has_none() -> None:
    assert StoredRun(MemoryReader(session(), trace(), step(7))).index().with_values == frozenset()
