"""Event files that were cut, holed, spoiled, replaced or written by two at once: what is whole in them is read."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

import pytest

import tb_gradflow
from tb_gradflow.errors import LogError
from tb_gradflow.store.directory import DirectoryReader, find_runs
from tb_gradflow.store.event_file import records
from tb_gradflow.store.run import StoredRun
from tests.store.samples import BEGAN, event_file, open_writer, session, step, trace, write_log


def places(path: Path) -> list[tuple[int, int]]:
    """Where each record's data begins, and how long it is."""
    with path.open("rb") as file:
        return [(place.offset, place.length) for place in records(file, str(path), 0)]


def overwrite(path: Path, start: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(content)


def steps_of(log_dir: Path) -> tuple[int, ...]:
    return tb_gradflow.open_log(log_dir).steps


def test_what_comes_after_a_hole_is_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As where somebody cuts a file off while it is being written: the writer goes on where it was."""
    path = write_log(tmp_path, steps=100)
    [*_, third, fourth, fifth] = places(path)
    overwrite(path, third[0] - 12, bytes(fourth[0] - third[0] + 50))

    with caplog.at_level(logging.WARNING, logger="tb_gradflow"):
        log = tb_gradflow.open_log(tmp_path)

    assert log.steps == (*range(33), *range(97, 100))
    [warning] = caplog.messages
    assert f"damaged at byte {third[0] - 12}" in warning
    assert f"up to byte {fifth[0] - 12}; what comes before and after it is read" in warning
    assert "Part of the log is damaged and was left out" in str(log.report()).replace("\n", " ")


def test_a_file_that_was_cut_while_it_was_written_is_read_on_both_sides(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        writer.write_trace(trace())
        for number in range(60):
            writer.write_step(step(number))
        writer.flush()
        path = event_file(tmp_path)
        os.truncate(path, path.stat().st_size - 3000)
        for number in range(60, 140):
            writer.write_step(step(number))

    steps = steps_of(tmp_path)

    assert steps[:1] == (0,)
    assert set(range(60, 140)) - set(steps) == set()


@pytest.mark.parametrize("at", [0, 1, 2, 3, 4], ids=["version", "session", "trace", "first chunk", "second chunk"])
def test_a_bit_that_flipped_is_found_and_takes_its_own_record_alone(tmp_path: Path, at: int) -> None:
    path = write_log(tmp_path, steps=100)
    start, length = places(path)[at]
    place = start + length - min(40, length // 3)
    overwrite(path, place, bytes([path.read_bytes()[place] ^ 1]))

    if at in (1, 2):
        with pytest.raises(LogError, match=r"fails its checksum: gradflow/(session|trace)/1700000000000.* was there"):
            tb_gradflow.open_log(tmp_path).report()
    else:
        left = {0: range(100), 3: range(1, 100), 4: [0, *range(33, 100)]}[at]
        assert steps_of(tmp_path) == tuple(left)


def test_two_writers_of_two_sessions_in_one_directory_are_two_recordings(tmp_path: Path) -> None:
    with (
        open_writer(tmp_path, session(1_700_000_000_000)) as one,
        open_writer(tmp_path, session(1_700_000_000_005)) as two,
    ):
        for writer in (one, two):
            writer.write_trace(trace())
        for number in range(40):
            one.write_step(step(number))
            two.write_step(step(2 * number))

    log = tb_gradflow.open_log(tmp_path)

    assert log.steps == tuple(range(0, 80, 2))
    assert "an earlier recording" in str(log.report()).replace("\n", " ")


def test_two_writers_that_began_in_one_millisecond_take_no_step_twice(tmp_path: Path) -> None:
    for _ in range(2):
        write_log(tmp_path, steps=70)

    assert steps_of(tmp_path) == tuple(range(70))


def test_steps_that_begin_again_in_one_session_are_left_out_and_said_to_be(tmp_path: Path) -> None:
    write_log(tmp_path, steps=20)
    with open_writer(tmp_path) as writer:
        writer.write_trace(trace())
        for number in range(10, 30):
            writer.write_step(step(number))

    log = tb_gradflow.open_log(tmp_path)

    assert log.steps == (0, *range(1, 20))
    assert all("these steps were recorded before" in problem for problem in log.recorded.damaged)


@pytest.mark.parametrize("times", [(BEGAN, BEGAN - 10**6), (0.0, 32503680000.0), (BEGAN, BEGAN)])
def test_a_clock_may_stand_still_or_jump(tmp_path: Path, times: tuple[float, float]) -> None:
    with open_writer(tmp_path) as writer:
        writer.write_trace(trace())
        for number, time in enumerate(times):
            record = step(number)
            writer.write_step(type(record)(0, number, time, record.losses, record.gradients, record.variables))

    log = tb_gradflow.open_log(tmp_path)

    assert log.history("dense/kernel")["wall_time"].tolist() == list(times)
    assert log.last_recorded == times[1]


def test_a_directory_that_was_deleted_and_made_again_is_read_anew(tmp_path: Path) -> None:
    write_log(tmp_path, steps=50)
    run = StoredRun(DirectoryReader(str(tmp_path / "gradflow")))
    assert len(run.index().steps) == 50

    shutil.rmtree(tmp_path / "gradflow")
    with pytest.raises(LogError, match="cannot be read: No such file"):
        run.index()
    write_log(tmp_path, steps=5, of=session(1_800_000_000_000))

    assert run.index().steps == tuple(range(5))


def test_a_file_with_another_one_in_its_place_is_read_anew(tmp_path: Path) -> None:
    path = write_log(tmp_path, steps=50)
    run = StoredRun(DirectoryReader(str(tmp_path / "gradflow")))
    assert len(run.index().steps) == 50

    path.write_bytes(write_log(tmp_path / "other", steps=3, of=session(1_800_000_000_000)).read_bytes())

    assert run.index().session.id == "1800000000000"
    assert run.index().steps == (0, 1, 2)


def test_a_file_that_has_gone_is_a_log_error(tmp_path: Path) -> None:
    path = write_log(tmp_path, steps=3)
    log = tb_gradflow.open_log(tmp_path)

    path.unlink()

    with pytest.raises(LogError, match="cannot be read: No such file"):
        log.report()


def test_a_pipe_a_loop_of_links_and_what_may_not_be_read_are_passed_over(tmp_path: Path) -> None:
    write_log(tmp_path / "run", steps=3)
    os.mkfifo(tmp_path / "run" / "events.out.tfevents.1.gradflow")
    (tmp_path / "run" / "again").symlink_to(tmp_path)
    (tmp_path / "run" / "events.out.tfevents.2").symlink_to(tmp_path / "nowhere")

    assert list(find_runs(str(tmp_path))) == ["run"]


def test_a_damaged_trace_takes_its_own_steps_alone(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        for index in (0, 1):
            writer.write_trace(trace(index))
            for number in range(3 * index, 3 * index + 3):
                writer.write_step(step(number, trace=index))
    path = event_file(tmp_path)
    content = path.read_bytes()
    start = content.index(b"\x1f\x8b", content.index(b"gradflow/trace/1700000000000/1"))
    overwrite(path, start + 30, bytes([content[start + 30] ^ 0xFF]))

    log = tb_gradflow.open_log(tmp_path)

    report = log.report()
    assert report.step == 2
    assert {each.status for each in report.variables.values()} == {"connected", "disconnected"}
    assert "its steps are left out" in str(report).replace("\n", " ")
    with pytest.raises(LogError, match=r"gradflow/trace/1700000000000/1 was there"):
        log.report(5)
    assert len(log.history("dense/kernel")["norm"]) == len(log.steps) == 6
