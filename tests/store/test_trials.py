"""What was tried when a program had ended, in the log: it is read with the traces, and as it grows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tb_gradflow.record.schema import Trial, Trials
from tb_gradflow.serve.runs.history import Caches, History
from tb_gradflow.store.directory import DirectoryReader
from tb_gradflow.store.run import StoredRun
from tests.store.samples import open_writer, step, trace

FIRST = Trial("model.py", 3, 3, "x = 1", works=True, step=2)
SECOND = replace(FIRST, after="x = 2", works=False, not_tried="It ran before.")


def test_a_history_reads_them_when_they_come(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.write_trace(trace())
    for number in range(3):
        writer.write_step(step(number))
    writer.flush()
    history = History(StoredRun(DirectoryReader(str(tmp_path / "gradflow"))), "run", Caches())
    index = history.refresh()
    assert history.trace(index.session.id, 0).trials == ()

    for trial in (FIRST, SECOND):
        writer.write_trials(Trials((trial,)))
    writer.flush()
    state = history.state
    history.refresh()

    assert history.state != state
    assert history.trace(index.session.id, 0).trials == (FIRST, SECOND)


def test_a_damaged_record_of_them_is_left_out(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.write_trace(trace())
    for number in range(3):
        writer.write_step(step(number))
    writer.write_trials(Trials((replace(FIRST, line=-1),)))
    writer.write_trials(Trials((SECOND,)))
    writer.close()

    history = History(StoredRun(DirectoryReader(str(tmp_path / "gradflow"))), "run", Caches())
    index = history.refresh()

    assert history.trace(index.session.id, 0).trials == (SECOND,)
    history.refresh()
    assert "Trials.trials[0].line" in history.damage
