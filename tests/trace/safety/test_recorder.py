"""What the recorder writes besides steps: what it costs, and a log that stays below its cap."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tb_gradflow import GradFlowCallback, open_log
from tb_gradflow.record.checks import MOST_OPS
from tb_gradflow.store.directory import DirectoryReader
from tb_gradflow.store.run import StoredRun
from tb_gradflow.store.thinning import thin
from tb_gradflow.store.writer import LogWriter
from tb_gradflow.trace.log.recorder import Recorder, new_session
from tests.store.samples import step, trace
from tests.trace import models
from tests.trace.recording import data, train

CAP = 40_000


def recorded(directory: Path, steps: int, *, tell: int = -1) -> StoredRun:
    """A log with a small cap that was given so many steps."""
    recorder = Recorder(str(directory), new_session("sample"), cap_bytes=CAP)
    recorder.add_trace(trace())
    for number in range(steps):
        made = step(number)
        measured = {
            "gradients": np.frombuffer(made.gradients, "<f4"),
            "variables": np.frombuffer(made.variables, "<f4"),
            "losses": made.losses,
        }
        recorder.add_step(number, 0, measured, tell=number == tell)
    recorder.flush()
    return StoredRun(DirectoryReader(str(directory / "gradflow")))


def size(directory: Path) -> int:
    return sum(file.stat().st_size for file in (directory / "gradflow").iterdir())


def test_a_log_never_grows_far_beyond_its_cap_and_spans_the_whole_training(tmp_path: Path) -> None:
    steps = 5_000

    index = recorded(tmp_path, steps).index()

    assert len(list((tmp_path / "gradflow").iterdir())) == 1
    assert size(tmp_path) < 1.2 * CAP
    gaps = np.diff(index.steps)
    assert index.steps[0] == 0
    assert index.steps[-1] > steps - 2 * gaps.max()
    assert gaps.max() <= 2 * gaps.min()
    assert len(index.steps) > 50


def test_a_step_that_was_told_of_stays(tmp_path: Path) -> None:
    index = recorded(tmp_path, 2_000, tell=77).index()

    assert 77 in index.steps


def test_a_log_that_cannot_be_thinned_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("tb_gradflow.trace.log.recorder.thin", fail)

    index = recorded(tmp_path, 2_000).index()

    assert index.steps[:100] == tuple(range(100))
    assert index.steps[-1] > 300
    assert len(os.listdir(tmp_path / "gradflow")) == 1


def test_a_log_that_is_being_thinned_is_read_with_all_its_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a kill at that moment: what is complete hides nothing, and TensorBoard takes no other file for a log."""
    read: list[tuple[int, int]] = []

    def reduced(run: StoredRun, session: str, writer: LogWriter, pinned: Collection[int] = ()) -> int:
        steps = thin(run, session, writer, pinned)
        read.append((len(open_log(tmp_path).steps), steps))
        assert sum("tfevents" in name for name in os.listdir(tmp_path / "gradflow")) == 1
        return steps

    monkeypatch.setattr("tb_gradflow.trace.log.recorder.thin", reduced)

    recorded(tmp_path, 300)

    assert read
    assert all(seen == steps for seen, steps in read)


def test_the_log_says_what_recording_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tb_gradflow.trace.observed.forms._EXTRA", 1e9)  # steps that are not recorded run without it
    x, y = data(outputs=2, rows=64)

    train(models.functional, x, y, GradFlowCallback(tmp_path, update_freq=2), epochs=4)

    run = StoredRun(DirectoryReader(str(tmp_path / "gradflow")))
    cost = run.index().cost
    assert cost is not None
    assert (cost.steps, cost.recorded) == (14, 7)  # before the last of the recorded ones, step 14
    assert 0 < cost.extra < cost.seconds
    assert cost.set_up > 0
    assert open_log(tmp_path).steps == tuple(range(0, 16, 2))


def test_a_step_with_more_ops_than_a_log_may_hold_is_refused_before_it_is_written(tmp_path: Path) -> None:
    """A reader would refuse the whole log."""
    small = trace()
    large = replace(small, ops=small.ops * (MOST_OPS // len(small.ops) + 1))
    recorder = Recorder(str(tmp_path), new_session("sample"))

    with pytest.raises(ValueError, match="a log holds at most 200,000"):
        recorder.add_trace(large)
    assert recorder.add_trace(small) == 0
