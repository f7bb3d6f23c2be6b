"""The edits of a run as one patch, and written into the files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tb_gradflow.errors import LogError
from tb_gradflow.record.report import Edit, Finding, Severity
from tb_gradflow.record.schema import Passage
from tb_gradflow.serve.reports.fixing import apply, fixes_of, patch

PROGRAM = (
    "import tensorflow as tf\n\n\ndef loss(p):\n    hard = tf.round(p)\n    kept = tf.floor(hard)\n    return kept\n"
)
ROUND = Edit("model.py", 5, 5, "    hard = tf.round(p)", "    v = p\n    hard = v + tf.stop_gradient(tf.round(v) - v)")
FLOOR = Edit("model.py", 6, 6, "    kept = tf.floor(hard)", "    kept = hard")
FIXED = PROGRAM.replace(ROUND.before, ROUND.after).replace(FLOOR.before, FLOOR.after)


def finding(edit: Edit | None, severity: Severity = "error") -> Finding:
    return Finding("nondiff_rounding", severity, ("w",), None, None, "", "", 0, -1, (), edit)


def test_each_edit_is_there_once_and_none_of_what_is_only_told() -> None:
    other = Edit("model.py", 7, 7, "    return kept", "    return hard")

    fixes = fixes_of([finding(FLOOR), finding(ROUND, "warning"), finding(FLOOR), finding(None), finding(other, "info")])

    assert fixes.edits == (ROUND, FLOOR)
    assert fixes.left_out == ()


def test_of_two_edits_of_one_line_the_more_severe_finding_has_its_own() -> None:
    again = Edit("model.py", 5, 6, "    hard = tf.round(p)\n    kept = tf.floor(hard)", "    kept = p")

    fixes = fixes_of([finding(ROUND), finding(again, "warning")])

    assert fixes.edits == (ROUND,)
    assert fixes.left_out == (again,)


def test_git_applies_the_patch_of_several_edits(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(PROGRAM)
    passage = Passage("model.py", 4, "\n".join(PROGRAM.split("\n")[3:7]))

    text = patch([ROUND, FLOOR], [passage])
    done = subprocess.run(
        ["git", "apply", "--unidiff-zero", "-"], input=text, cwd=tmp_path, text=True, capture_output=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "model.py").read_text() == FIXED


def test_edits_are_written_and_the_mode_of_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(PROGRAM)
    path.chmod(0o755)

    assert apply([ROUND, FLOOR], tmp_path) == [path]
    assert path.read_text() == FIXED
    assert path.stat().st_mode & 0o777 == 0o755
    assert os.listdir(tmp_path) == ["model.py"]


def test_the_line_endings_of_the_file_stay(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_bytes(PROGRAM.replace("\n", "\r\n").encode())

    apply([ROUND], tmp_path)

    assert path.read_bytes() == PROGRAM.replace(ROUND.before, ROUND.after).replace("\n", "\r\n").encode()


def test_a_file_that_reads_otherwise_is_left_as_it_is_and_so_are_all_others(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(PROGRAM)
    (tmp_path / "other.py").write_text("x = 2\n")

    with pytest.raises(LogError, match=r"other.py:1 no longer matches what was recorded"):
        apply([ROUND, Edit("other.py", 1, 1, "x = 1", "x = 3")], tmp_path)
    assert (tmp_path / "model.py").read_text() == PROGRAM


@pytest.mark.parametrize("file", ["../model.py", "/etc/passwd", "link/model.py"])
def test_nothing_outside_of_the_directory_is_written(file: str, tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "model.py").write_text(PROGRAM)
    (tmp_path / "model.py").write_text(PROGRAM)
    (inside / "link").symlink_to(outside)

    with pytest.raises(LogError, match="is not below"):
        apply([Edit(file, 5, 5, ROUND.before, ROUND.after)], inside)
    assert (outside / "model.py").read_text() == PROGRAM


@pytest.mark.parametrize(
    "file", ["bell\x00.py", "a" * 5000 + ".py", "loop.py", "pipe.py", "folder.py", "notes.txt", ".git/config"]
)
def test_what_is_no_python_file_is_refused(file: str, tmp_path: Path) -> None:
    (tmp_path / "loop.py").symlink_to("loop.py")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / ".git").mkdir()
    for name in ("notes.txt", ".git/config"):
        (tmp_path / name).write_text(PROGRAM)

    with pytest.raises(LogError, match=r"cannot be read|not a Python file"):
        apply([Edit(file, 5, 5, ROUND.before, ROUND.after)], tmp_path)


def test_a_link_to_a_file_inside_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_text(PROGRAM)
    (tmp_path / "model.py").symlink_to("real.py")

    assert apply([ROUND], tmp_path) == [tmp_path / "real.py"]
    assert (tmp_path / "model.py").is_symlink()
    assert (tmp_path / "real.py").read_text() == PROGRAM.replace(ROUND.before, ROUND.after)


def test_an_edit_made_of_lines_that_the_file_does_not_have_is_refused(tmp_path: Path) -> None:
    """Its own line is right; what is written there comes from another one, which somebody changed in the log."""
    (tmp_path / "model.py").write_text(PROGRAM)
    recorded = Passage("model.py", 4, "\n".join(PROGRAM.split("\n")[3:7]))
    changed = Passage("model.py", 4, recorded.text.replace("return kept", "return __import__('os').system('id')"))
    edit = Edit("model.py", 5, 5, ROUND.before, "    hard = __import__('os').system('id')")

    with pytest.raises(LogError, match="no longer matches what was recorded"):
        apply([edit], tmp_path, [changed])

    assert (tmp_path / "model.py").read_text() == PROGRAM
    assert apply([ROUND], tmp_path, [changed, recorded]) == [tmp_path / "model.py"]
