"""A log that has reached its cap goes on with every second step of its past."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tb_gradflow.record.schema import GradientRows, OpValue, Rows, StepValues
from tb_gradflow.store.directory import DirectoryReader
from tb_gradflow.store.layout import event_file_path
from tb_gradflow.store.run import StoredRun
from tb_gradflow.store.thinning import thin
from tb_gradflow.store.writer import LogWriter, RecordFile
from tests.store.samples import open_writer, session, step, trace, write_log


def thinned(before: Path, after: Path, pinned: tuple[int, ...] = ()) -> StoredRun:
    later = session(id=int(session().id) + 1)
    with LogWriter(later, RecordFile(event_file_path(str(after))), stride=2) as writer:
        thin(StoredRun(DirectoryReader(str(before / "gradflow"))), session().id, writer, pinned)
        for number in range(100, 108):
            writer.write_step(step(number))
    return StoredRun(DirectoryReader(str(after / "gradflow")))


def test_every_second_step_stays_with_its_numbers(tmp_path: Path) -> None:
    write_log(tmp_path / "before", steps=70)

    run = thinned(tmp_path / "before", tmp_path / "after")

    index = run.index()
    assert index.steps == (*range(0, 70, 2), *range(100, 108, 2))
    assert run.trace(index.session.id, 0) == trace()
    for head in index.chunks:
        numbers = [step(number) for number in head.steps]
        assert run.gradients(index.session.id, head.id).data == b"".join(each.gradients for each in numbers)
        assert run.variables(index.session.id, head.id).data == b"".join(each.variables for each in numbers)
        assert head.losses == tuple(each.losses for each in numbers)


def test_steps_that_matter_stay(tmp_path: Path) -> None:
    write_log(tmp_path / "before", steps=10)

    run = thinned(tmp_path / "before", tmp_path / "after", pinned=(0, 1, 7))

    assert run.index().steps[:7] == (0, 1, 2, 4, 6, 7, 8)


def test_what_was_measured_of_a_forward_pass_stays_with_its_step(tmp_path: Path) -> None:
    rows = Rows(2, (17, 203))
    bad = OpValue(1, 0, -1, (512, 5), -2.5, 1.25, 0, 40, 0, 0, 2, rows=rows)
    measured = StepValues(3, 512, (bad,), (GradientRows(0, 1, 0, rows),))
    with open_writer(tmp_path / "before") as writer:
        writer.write_trace(trace())
        for number in range(5):
            writer.write_step(replace(step(number), values=measured if number == 3 else None))

    run = thinned(tmp_path / "before", tmp_path / "after", pinned=(3,))

    assert run.index().with_values == {3}
    assert run.values(run.index().session.id, 3, trace()) == measured
