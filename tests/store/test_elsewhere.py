"""Logs on another filesystem, through the `gfile` that TensorBoard has without TensorFlow."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tensorboard.compat.tensorflow_stub import errors
from tensorboard.compat.tensorflow_stub.io import gfile

import tb_gradflow
from tb_gradflow.errors import LogError
from tb_gradflow.store import elsewhere
from tb_gradflow.store.directory import DirectoryReader, find_runs
from tests.store.samples import event_file, write_log


class Shelf(gfile.LocalFileSystem):
    """A filesystem of addresses `shelf://…`, whose files are on this machine."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._root = root
        self.read_from: list[str] = []
        self.is_down = False

    def _path(self, address: str | bytes) -> str:
        if self.is_down:
            raise OSError("the shelf is being moved\nfor good")
        return str(self._root / os.fsdecode(address).removeprefix("shelf://"))

    def join(self, path: str, *paths: str) -> str:
        return "/".join([path.rstrip("/"), *paths])

    def exists(self, filename: str) -> Any:
        return super().exists(self._path(filename))

    def read(self, filename: str, *arguments: Any, **options: Any) -> Any:
        self.read_from.append(filename)
        return super().read(self._path(filename), *arguments, **options)

    def isdir(self, dirname: str) -> Any:
        return super().isdir(self._path(dirname))

    def listdir(self, dirname: str) -> Any:
        return super().listdir(self._path(dirname))

    def stat(self, filename: str) -> Any:
        return super().stat(self._path(filename))


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    shelf = Shelf(tmp_path)
    monkeypatch.setitem(gfile._REGISTERED_FILESYSTEMS, "shelf", shelf)
    monkeypatch.setattr(elsewhere, "_gfile", lambda: gfile)
    return shelf


def test_a_log_elsewhere_says_what_a_local_one_says(shelf: Shelf, tmp_path: Path) -> None:
    write_log(tmp_path / "logs" / "run", steps=40)

    assert find_runs("shelf://logs") == {"run": "shelf://logs/run/gradflow"}
    log = tb_gradflow.open_log("shelf://logs/run/")

    assert log.steps == tuple(range(40))
    assert str(log.report()).splitlines()[1:] == str(tb_gradflow.open_log(tmp_path / "logs").report()).splitlines()[1:]


def test_what_is_added_is_copied_and_what_is_known_is_not_read_again(shelf: Shelf, tmp_path: Path) -> None:
    write_log(tmp_path, steps=3)
    reader = DirectoryReader("shelf://gradflow")
    before = len(reader.tags())
    read_once = len(shelf.read_from)

    assert len(reader.tags()) == before
    assert len(shelf.read_from) == read_once

    other = tmp_path / "other"
    write_log(other, steps=5)
    shutil.copy(event_file(other), tmp_path / "gradflow")
    reader.tags()

    assert len(shelf.read_from) > read_once
    assert sorted(path.name for path in Path(reader._directory).iterdir()) == sorted(
        path.name for path in (tmp_path / "gradflow").iterdir()
    )


def test_event_files_of_others_are_left_where_they_are(shelf: Shelf, tmp_path: Path) -> None:
    ours = write_log(tmp_path, steps=3)
    in_a_summary = ours.with_name("events.out.tfevents.1.host.v2")
    in_a_summary.write_bytes(ours.read_bytes())
    ours.with_name("events.out.tfevents.0.host.v2").write_bytes(b"scalars of somebody" * 100_000)
    ours.with_name("notes.txt").write_text("gradflow/session/", encoding="utf-8")
    copy = elsewhere.Copy("shelf://gradflow")

    copy.refresh()
    copy.refresh()

    assert sorted(path.name for path in Path(copy.path).iterdir()) == sorted([ours.name, in_a_summary.name])


def test_the_mention_of_ours_may_lie_across_two_pieces(shelf: Shelf, tmp_path: Path) -> None:
    name = "events.out.tfevents.0.host.v2"
    (tmp_path / name).write_bytes(b"\0" * (2**20 - 8) + b"gradflow/session/1700000000000")

    assert elsewhere.is_event_file(f"shelf://{name}")


def test_what_is_not_there_is_said_in_words(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("", encoding="utf-8")
    (tmp_path / "empty").mkdir()

    with pytest.raises(LogError, match="shelf://nowhere does not exist"):
        find_runs("shelf://nowhere")
    with pytest.raises(LogError, match=r"shelf://notes\.txt is a file: expected the directory"):
        find_runs("shelf://notes.txt")
    with pytest.raises(LogError, match="shelf://empty holds no event files"):
        find_runs("shelf://empty")
    with pytest.raises(LogError, match="unknown://logs cannot be read"):
        find_runs("unknown://logs")


def test_a_filesystem_that_fails_is_no_traceback(shelf: Shelf, tmp_path: Path) -> None:
    write_log(tmp_path / "run", steps=3)
    reader = DirectoryReader("shelf://run/gradflow")
    shelf.is_down = True

    with pytest.raises(LogError, match=r"shelf://run cannot be read \(OSError: the shelf is being moved\)"):
        find_runs("shelf://run")
    with pytest.raises(LogError, match=r"reading shelf:// needs TensorFlow, or a package that TensorBoard can use"):
        reader.tags()


def test_a_file_that_goes_while_it_is_copied_is_no_traceback(
    shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path / "run", steps=3)

    def gone(*_: Any, **__: Any) -> Any:
        raise errors.NotFoundError(None, None, "gone")

    monkeypatch.setattr(shelf, "read", gone)

    with pytest.raises(LogError, match=r"tfevents.* cannot be read \(NotFoundError: gone"):
        DirectoryReader("shelf://run/gradflow").tags()
