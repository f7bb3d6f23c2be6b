"""Event files that were cut, holed, spoiled, replaced or written by two at once: what is whole in them is read."""

from __future__ import annotations

import logging
import os
import shutil
import struct
from pathlib import Path

import pytest
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

import tb_gradflow
from tb_gradflow.cli.main import main
from tb_gradflow.errors import LogError
from tb_gradflow.store import event_file as event_file_module
from tb_gradflow.store.directory import DirectoryReader, find_runs
from tb_gradflow.store.event_file import records
from tb_gradflow.store.files import opened
from tb_gradflow.store.hyperparameters import below as hyperparameters_below
from tb_gradflow.store.run import StoredRun
from tb_gradflow.store.warning import MOST_TOLD
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


def test_a_larger_file_in_the_place_of_another_is_read_anew(tmp_path: Path) -> None:
    path = write_log(tmp_path, steps=3)
    run = StoredRun(DirectoryReader(str(tmp_path / "gradflow")))
    assert len(run.index().steps) == 3

    path.write_bytes(write_log(tmp_path / "other", steps=200, of=session(1_800_000_000_000)).read_bytes())

    index = run.index()
    assert index.session.id == "1800000000000"
    assert index.steps == tuple(range(200))
    assert index.damaged == ()


def test_of_much_damage_only_the_first_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_log(tmp_path, steps=3)
    start, length = places(path)[-1]
    whole = bytearray(path.read_bytes()[start - 12 : start + length + 4])
    whole[-1] ^= 1
    with path.open("ab") as file:
        file.write(whole * 500)

    with caplog.at_level(logging.WARNING, logger="tb_gradflow"):
        log = tb_gradflow.open_log(tmp_path)

    assert len(caplog.messages) == MOST_TOLD
    assert caplog.messages[-1].endswith("; further damage is not printed")
    assert "and 497 more like it" in log.recorded.damage


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


def test_a_file_that_may_not_be_read_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may run as root, who may read everything."""
    path = write_log(tmp_path, steps=3)

    def refused(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.open", refused)
    with pytest.raises(LogError, match=f"{path.name} cannot be read: Permission denied"):
        tb_gradflow.open_log(tmp_path)


def test_directories_that_link_to_each_other_are_read_once_on_each_way(tmp_path: Path) -> None:
    """There are 2**40 ways from one to the other and back."""
    for name, other in (("a", "b"), ("b", "a")):
        write_log(tmp_path / name, steps=1)
        for number in range(2):
            (tmp_path / name / f"link{number}").symlink_to(tmp_path / other)
        (tmp_path / name / "up").symlink_to(tmp_path)

    runs = find_runs(str(tmp_path))

    assert {"a", "b", "a/link0", "b/link1"} <= set(runs)
    assert len(runs) <= 8
    assert hyperparameters_below(str(tmp_path)) == {}


def test_below_a_link_no_directory_is_read_twice(tmp_path: Path) -> None:
    """Of ten directories, each with links to all later ones, a thousand paths lead to the last one."""
    for number in range(10):
        write_log(tmp_path / str(number), steps=1)
        for later in range(number + 1, 10):
            (tmp_path / str(number) / f"to{later}").symlink_to(tmp_path / str(later))

    assert 10 < len(find_runs(str(tmp_path))) < 100


def test_a_pipe_among_the_files_of_others_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "events.out.tfevents.1.host")

    assert hyperparameters_below(str(tmp_path)) == {}
    with pytest.raises(OSError, match="not a regular file"):
        opened(str(tmp_path / "events.out.tfevents.1.host"))


def test_a_record_that_says_that_it_is_huge_is_not_read(tmp_path: Path) -> None:
    """The file is as large as it says, but takes no space on the disk."""
    path = write_log(tmp_path, steps=40)
    length = struct.pack("<Q", 2**38)
    with path.open("ab") as file:
        file.write(length + struct.pack("<I", masked_crc32c(length)))
    os.truncate(path, 2**38 + 10**6)

    log = tb_gradflow.open_log(tmp_path)

    assert log.steps == tuple(range(40))
    assert f"a record of {2**38} bytes, expected at most {2**30}" in log.recorded.damage


@pytest.mark.parametrize("size", [2**20, 2**26 + 5])
def test_a_large_hole_is_passed_over(tmp_path: Path, size: int) -> None:
    path = write_log(tmp_path, steps=40)
    whole = path.read_bytes()
    [*_, last] = places(path)
    with path.open("r+b") as file:
        file.seek(last[0] - 12 + size)
        file.write(whole[last[0] - 12 :])
        file.seek(last[0] - 12)
        file.write(bytes(100))

    assert steps_of(tmp_path) == tuple(range(40))


def test_the_search_behind_a_hole_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_file_module, "_MOST_SEARCHED", 10_000)
    path = tmp_path / "file"
    path.write_bytes(bytes(20_000) + write_log(tmp_path / "log", steps=1).read_bytes())

    with path.open("rb") as file:
        assert event_file_module.next_record(file, 0) is None
        assert event_file_module.next_record(file, 15_000) == 20_000


def test_the_name_of_a_file_steers_no_terminal_and_no_build_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_log(tmp_path / "run\n::error::pwned", steps=40)
    named = path.rename(path.with_name("events.out.tfevents.\x1b[2J\u202e.gradflow"))
    start, length = places(named)[-1]
    overwrite(named, start + length - 9, b"\xff\xff")

    with caplog.at_level(logging.WARNING, logger="tb_gradflow"):
        log = tb_gradflow.open_log(tmp_path)
    with pytest.raises(LogError) as raised:
        log.history("no\x1b[2J such")
    (named.parent / "events.out.tfevents.2.gradflow").write_bytes(b"spoiled" * 9)
    named.unlink()
    with pytest.raises(LogError) as gone:
        tb_gradflow.open_log(tmp_path)

    said = [*caplog.messages, str(raised.value), str(gone.value)]
    assert len(caplog.messages) == 2
    assert not any(character in each for each in said for character in "\x1b\u202e")
    assert not any(line.startswith("::") for each in said for line in each.splitlines())


def test_a_directory_whose_name_is_not_utf_8_has_a_name_that_can_be_written(tmp_path: Path) -> None:
    directory = os.fsdecode(os.fsencode(tmp_path) + b"/run\xff")
    write_log(Path(directory), steps=1)
    page = tmp_path / "page.html"

    assert list(find_runs(str(tmp_path))) == ["run\\udcff"]
    tb_gradflow.open_log(directory).report().save_html(page)
    assert main(["report", str(tmp_path), "--run", os.fsdecode(b"run\xff"), "--html", str(page)]) == 0
