from __future__ import annotations

import math
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from tb_gradflow.serve.runs import course
from tb_gradflow.serve.runs.course import Course
from tb_gradflow.serve.runs.history import Caches, History
from tb_gradflow.store.directory import DirectoryReader, find_runs
from tb_gradflow.store.run import StoredRun
from tests.store.samples import open_writer, step, trace


def history_that_breaks_at(log_dir: Path, first: int, steps: int) -> History:
    """From step `first` on, every gradient has a NaN in it."""
    writer = open_writer(log_dir)
    writer.write_trace(trace())
    broken = struct.pack("<18f", *(value for _ in range(3) for value in (1.0, 0.5, 0.25, 0.0, 1.0, 0.0)))
    for number in range(steps):
        good = step(number, norm=1.0)
        writer.write_step(good if number < first else replace(good, gradients=broken, losses=(math.nan,)))
    writer.close()
    [directory] = find_runs(str(log_dir)).values()
    return History(StoredRun(DirectoryReader(directory)), "run", Caches())


def first_steps(told: course.Json) -> dict[str, int]:
    return {
        finding["cause"]: min(step for step, at in zip(told["steps"], told["present"], strict=True) if number in at)
        for number, finding in enumerate(told["findings"])
    }


def test_a_finding_of_the_structure_is_there_from_the_first_step(tmp_path: Path) -> None:
    told = Course().look(history_that_breaks_at(tmp_path, first=5, steps=5))

    assert told["complete"]
    assert told["steps"] == [0, 1, 2, 3, 4]
    assert first_steps(told)["nondiff_comparison"] == 0


def test_where_a_finding_begins_is_found_to_the_step_without_looking_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(course, "SECONDS_AT_ONCE", 60.0)
    monkeypatch.setattr(course, "SECONDS_IN_ALL", 60.0)
    history = history_that_breaks_at(tmp_path, first=333, steps=1000)

    told = Course().look(history)

    begins = [first for cause, first in first_steps(told).items() if cause != "nondiff_comparison"]
    assert told["complete"]
    assert len(told["steps"]) < 100
    assert 333 in begins


def test_what_was_not_looked_at_in_time_is_looked_at_when_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(course, "SECONDS_AT_ONCE", -1.0)
    history = history_that_breaks_at(tmp_path, first=9, steps=9)
    looking = Course()
    assert (looking.look(history)["steps"], looking.look(history)["complete"]) == ([], False)

    monkeypatch.setattr(course, "SECONDS_AT_ONCE", 60.0)

    assert looking.look(history)["complete"]
