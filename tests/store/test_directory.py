from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from tb_gradflow.errors import LogError, NewerLogError
from tb_gradflow.record.cost import Cost
from tb_gradflow.record.schema import FORMAT
from tb_gradflow.store.directory import DirectoryReader, find_runs
from tb_gradflow.store.layout import Tag, name_of_root, parse_tag, run_name
from tb_gradflow.store.run import StoredRun
from tests.store.samples import BEGAN, event_file, open_writer, session, step, trace, write_log


def stored(log_dir: Path) -> StoredRun:
    return StoredRun(DirectoryReader(str(log_dir / "gradflow")))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_log(tmp_path, steps=40)

    run = stored(tmp_path)
    index = run.index()

    assert index.session == session()
    assert index.traces == (0,)
    assert [head.id for head in index.chunks] == [0, 1, 33]
    assert index.steps == tuple(range(40))
    assert index.chunks[1].wall_times[0] == BEGAN + 1
    assert index.chunks[1].losses[0] == (0.5,)
    assert run.trace(index.session.id, 0) == trace()
    gradients = run.gradients(index.session.id, 33)
    assert gradients.shape == (7, 3, 6)
    assert gradients.data == b"".join(step(number).gradients for number in range(33, 40))
    assert run.variables(index.session.id, 0).data == step(0).variables


def test_the_newest_cost_is_read_and_older_logs_have_none(tmp_path: Path) -> None:
    with open_writer(tmp_path / "new") as writer:
        writer.write_trace(trace())
        for number in range(40):
            writer.write_cost(Cost(10 * number, number, 0.1 * number, 0.01 * number, 2.5))
            writer.write_step(step(number))
    write_log(tmp_path / "old", steps=3)

    costs = [stored(tmp_path / name).index().cost for name in ("new", "old")]

    assert costs == [Cost(390, 39, 0.1 * 39, 0.01 * 39, 2.5), None]


def test_losses_that_are_not_finite_stay_what_they_are(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        writer.write_trace(trace())
        for number, loss in enumerate([float("inf"), float("-inf"), float("nan")]):
            writer.write_step(step(number, loss=loss))

    losses = [loss for head in stored(tmp_path).index().chunks for [loss] in head.losses]

    assert losses[:2] == [float("inf"), float("-inf")]
    assert losses[2] != losses[2]


def test_a_step_is_found_in_its_chunk(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        writer.write_trace(trace())
        for number in range(0, 200, 5):
            writer.write_step(step(number))
    index = stored(tmp_path).index()

    head, at = index.find(190) or (None, -1)

    assert head is not None
    assert head.steps[at] == 190
    assert index.find(191) is None
    assert index.find(-1) is None
    assert index.find(10_000) is None


def test_a_growing_log_is_read_on(tmp_path: Path) -> None:
    writer = open_writer(tmp_path)
    writer.write_trace(trace())
    writer.write_step(step(0))
    run = stored(tmp_path)
    before = run.index().steps

    writer.write_step(step(1))
    writer.flush()

    assert before == (0,)
    assert run.index().steps == (0, 1)
    writer.close()


@pytest.mark.parametrize("cut", [1, 3, 7, 100, 500])
def test_a_log_that_was_cut_off_is_read_as_far_as_it_is_whole(tmp_path: Path, cut: int) -> None:
    path = write_log(tmp_path, steps=40)
    path.write_bytes(path.read_bytes()[:-cut])

    assert stored(tmp_path).index().steps == tuple(range(33))


def test_a_record_that_is_completed_later_is_read_then(tmp_path: Path) -> None:
    path = write_log(tmp_path, steps=40)
    whole = path.read_bytes()
    path.write_bytes(whole[:-50])
    run = stored(tmp_path)
    assert run.index().steps == tuple(range(33))

    path.write_bytes(whole)

    assert run.index().steps == tuple(range(40))


def test_a_log_without_a_step_has_its_trace(tmp_path: Path) -> None:
    write_log(tmp_path, steps=0)

    index = stored(tmp_path).index()

    assert index.traces == (0,)
    assert index.steps == ()


def test_the_newest_session_that_recorded_something_wins(tmp_path: Path) -> None:
    write_log(tmp_path, steps=3, of=session(1_700_000_000_000))
    write_log(tmp_path, steps=5, of=session(1_800_000_000_000))
    open_writer(tmp_path, session(1_900_000_000_000)).close()

    index = stored(tmp_path).index()

    assert index.session.id == "1800000000000"
    assert len(index.steps) == 5


def test_a_log_of_a_newer_version_says_so(tmp_path: Path) -> None:
    open_writer(tmp_path, session(format=FORMAT + 1)).close()

    with pytest.raises(NewerLogError, match=r"upgrade with `pip install -U"):
        stored(tmp_path).index()


def test_a_file_that_was_cut_off_at_its_beginning_says_so(tmp_path: Path) -> None:
    path = write_log(tmp_path)
    path.write_bytes(path.read_bytes()[:60])

    with pytest.raises(LogError, match="the log has no session: its file was cut off"):
        stored(tmp_path).index()


def test_a_file_of_something_else_says_where_it_is_wrong(tmp_path: Path) -> None:
    path = write_log(tmp_path)
    path.write_bytes(b"GIF89a" + bytes(100))

    with pytest.raises(LogError, match=r"tfevents.* is damaged at byte 0"):
        stored(tmp_path).index()


def test_what_comes_before_the_damage_is_read_and_the_damage_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_log(tmp_path, steps=40)
    path.write_bytes(path.read_bytes() + b"\xff" * 100)
    run = stored(tmp_path)

    with caplog.at_level(logging.WARNING, logger="tb_gradflow"):
        steps = run.index().steps
        run.index()

    assert steps == tuple(range(40))
    [warning] = caplog.messages
    assert "is damaged at byte" in warning


def test_a_damaged_trace_is_a_log_error(tmp_path: Path) -> None:
    path = write_log(tmp_path)
    content = bytearray(path.read_bytes())
    second_blob = content.index(b"\x1f\x8b", content.index(b"gradflow/trace"))
    content[second_blob + 30] ^= 0xFF
    path.write_bytes(content)
    run = stored(tmp_path)
    run.index()

    with pytest.raises(LogError, match=r"fails its checksum: gradflow/trace/1700000000000/0 was there"):
        run.trace(session().id, 0)


def test_event_files_of_others_beside_it_do_not_matter(tmp_path: Path) -> None:
    write_log(tmp_path)
    EventFileWriter(str(tmp_path / "gradflow")).close()
    EventFileWriter(str(tmp_path / "train")).close()

    assert find_runs(str(tmp_path)) == {".": str(tmp_path / "gradflow")}
    assert stored(tmp_path).index().steps == (0, 1, 2)


def test_runs_are_found_at_any_depth_and_named_without_our_directory(tmp_path: Path) -> None:
    for name in ("b", "a/deep", "größe <b>"):
        write_log(tmp_path / name)

    assert list(find_runs(str(tmp_path))) == ["a/deep", "b", "größe <b>"]
    assert list(find_runs(str(tmp_path / "b"))) == ["."]
    assert list(find_runs(str(tmp_path / "b" / "gradflow"))) == ["."]


def test_a_directory_that_does_not_exist_says_so(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"nowhere does not exist: expected the directory that was given"):
        find_runs(str(tmp_path / "nowhere"))


def test_a_file_in_the_place_of_a_directory_says_so(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="is a file: expected the directory"):
        find_runs(str(write_log(tmp_path)))


def test_an_empty_directory_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"holds no event files: .*GradFlowCallback"):
        find_runs(str(tmp_path))


def test_a_directory_with_other_event_files_alone_says_so(tmp_path: Path) -> None:
    EventFileWriter(str(tmp_path)).close()

    with pytest.raises(LogError, match=r"holds only event files of other plugins \(1\)"):
        find_runs(str(tmp_path))


@pytest.mark.parametrize(
    "tag",
    [Tag("session", "1700000000000", -1), Tag("trace", "1700000000000", 12), Tag("gradients", "1700000000000", 3)],
)
def test_a_tag_is_what_it_spells(tag: Tag) -> None:
    assert parse_tag(str(tag)) == tag


@pytest.mark.parametrize(
    "text",
    [
        "",
        "loss",
        "gradflow/session",
        "gradflow/trace/1",
        "gradflow/trace/1/x",
        "gradflow/trace/1/²",
        "gradflow/moods/1/2",
    ],
)
def test_tags_of_others_are_none_of_ours(text: str) -> None:
    assert parse_tag(text) is None


@pytest.mark.parametrize(
    ("directory", "name"),
    [("gradflow", "."), (".", "."), ("a/gradflow", "a"), ("a/b", "a/b"), ("notgradflow", "notgradflow")],
)
def test_a_run_is_named_without_our_directory(directory: str, name: str) -> None:
    assert run_name(directory) == name


@pytest.mark.parametrize(
    ("root", "directory", "name"),
    [
        ("/logs/mine", "gradflow", "mine"),
        ("/logs/mine/", "gradflow", "mine"),
        ("/logs/mine/gradflow", ".", "mine"),
        ("/logs/mine", ".", "mine"),
        ("/logs/gradflow", "gradflow", "gradflow"),
        ("gs://bucket/mine", "gradflow", "mine"),
        ("gs://bucket", "gradflow", "bucket"),
        (".", "gradflow", Path.cwd().name),
        ("", "gradflow", "(this directory)"),
        ("/", "gradflow", "(this directory)"),
        ("/logs/taken", "gradflow", "taken (this directory)"),
    ],
)
def test_a_run_that_is_the_whole_log_has_its_directory_s_own_name(root: str, directory: str, name: str) -> None:
    assert name_of_root(root, directory, {".", "taken"}) == name


def test_a_trace_without_rows_and_variables_is_read(tmp_path: Path) -> None:
    bare = replace(trace(), variables=(), variable_gradients=(), tensor_gradients=())
    with open_writer(tmp_path) as writer:
        writer.write_trace(bare)
        writer.write_step(replace(step(0), gradients=b"", variables=b""))

    run = stored(tmp_path)

    assert run.index().steps == (0,)
    assert run.gradients(session().id, 0).shape == (1, 0, 6)


def test_the_event_file_lies_in_a_directory_of_its_own(tmp_path: Path) -> None:
    write_log(tmp_path)

    assert event_file(tmp_path).parent == tmp_path / "gradflow"
