"""The edits of a run as one patch, and written into the files."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import tb_gradflow
from tb_gradflow.cli.main import main
from tb_gradflow.errors import LogError
from tb_gradflow.record.report import Edit, Finding, Severity
from tb_gradflow.record.schema import Passage
from tb_gradflow.serve.reports.fixing import apply, fixes_of, patch
from tests.recordings.logs import group, unpack

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

    assert apply([ROUND, FLOOR], tmp_path, [ROUND, FLOOR]) == [path]
    assert path.read_text() == FIXED
    assert path.stat().st_mode & 0o777 == 0o755
    assert os.listdir(tmp_path) == ["model.py"]


def test_the_line_endings_of_the_file_stay(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_bytes(PROGRAM.replace("\n", "\r\n").encode())

    apply([ROUND], tmp_path, [ROUND])

    assert path.read_bytes() == PROGRAM.replace(ROUND.before, ROUND.after).replace("\n", "\r\n").encode()


def test_a_file_that_reads_otherwise_is_left_as_it_is_and_so_are_all_others(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(PROGRAM)
    (tmp_path / "other.py").write_text("x = 2\n")
    other = Edit("other.py", 1, 1, "x = 1", "x = 3")

    with pytest.raises(LogError, match=r"other.py:1 no longer matches what was recorded"):
        apply([ROUND, other], tmp_path, [ROUND, other])
    assert (tmp_path / "model.py").read_text() == PROGRAM


@pytest.mark.parametrize("file", ["../model.py", "/etc/passwd", "link/model.py"])
def test_nothing_outside_of_the_directory_is_written(file: str, tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "model.py").write_text(PROGRAM)
    (tmp_path / "model.py").write_text(PROGRAM)
    (inside / "link").symlink_to(outside)
    edit = Edit(file, 5, 5, ROUND.before, ROUND.after)

    with pytest.raises(LogError, match="is not below"):
        apply([edit], inside, [edit])
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
    edit = Edit(file, 5, 5, ROUND.before, ROUND.after)

    with pytest.raises(LogError, match=r"cannot be read|not a Python file"):
        apply([edit], tmp_path, [edit])


def test_a_link_to_a_file_inside_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_text(PROGRAM)
    (tmp_path / "model.py").symlink_to("real.py")

    assert apply([ROUND], tmp_path, [ROUND]) == [tmp_path / "real.py"]
    assert (tmp_path / "model.py").is_symlink()
    assert (tmp_path / "real.py").read_text() == PROGRAM.replace(ROUND.before, ROUND.after)


def test_an_edit_made_of_lines_that_the_file_does_not_have_is_refused(tmp_path: Path) -> None:
    """Its own line is right; what is written there comes from another one, which somebody changed in the log."""
    (tmp_path / "model.py").write_text(PROGRAM)
    recorded = Passage("model.py", 4, "\n".join(PROGRAM.split("\n")[3:7]))
    changed = Passage("model.py", 4, recorded.text.replace("return kept", "return __import__('os').system('id')"))
    edit = Edit("model.py", 5, 5, ROUND.before, "    hard = __import__('os').system('id')")

    with pytest.raises(LogError, match="no longer matches what was recorded"):
        apply([edit], tmp_path, [edit], [changed])

    assert (tmp_path / "model.py").read_text() == PROGRAM
    assert apply([ROUND], tmp_path, [ROUND], [changed, recorded]) == [tmp_path / "model.py"]


@pytest.mark.parametrize(
    "encoding", ["utf-8-sig", "iso-8859-1"], ids=["with a byte order mark", "with an encoding in a comment"]
)
@pytest.mark.parametrize("end", ["\n", ""], ids=["", "no newline at the end"])
def test_a_file_keeps_its_encoding(encoding: str, end: str, tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    first = "" if encoding == "utf-8-sig" else f"# coding: {encoding}"
    text = "\n".join([first, "# größe", *PROGRAM.rstrip("\n").split("\n")[2:]]) + end
    path.write_bytes(text.encode(encoding))

    apply([ROUND], tmp_path, [ROUND])

    assert path.read_bytes() == text.replace(ROUND.before, ROUND.after).encode(encoding)


@pytest.mark.parametrize(
    ("content", "after"),
    [
        (PROGRAM.replace("import", "# coding: no-such-code\nimport", 1), "x"),
        ("# coding: ascii\n\n\n\n" + ROUND.before, "größe"),
    ],
    ids=["an encoding that nobody knows", "a letter that the encoding lacks"],
)
def test_what_cannot_be_written_in_the_encoding_of_the_file_is_refused(
    content: str, after: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.py"
    path.write_text(content, encoding="utf-8")
    edit = Edit("model.py", 5, 5, ROUND.before, after)

    with pytest.raises(LogError, match=r"model\.py cannot be (read|written)"):
        apply([edit], tmp_path, [edit])
    assert path.read_text(encoding="utf-8") == content
    assert os.listdir(tmp_path) == ["model.py"]


def of_two_files(tmp_path: Path) -> tuple[Path, Path, list[Edit]]:
    """The second is the one that makes trouble."""
    first, second = tmp_path / "model.py", tmp_path / "z" / "other.py"
    second.parent.mkdir()
    for path in (first, second):
        path.write_text(PROGRAM)
    return first, second, [ROUND, Edit("z/other.py", 5, 5, ROUND.before, ROUND.after)]


def test_a_file_that_may_not_be_written_is_left_as_it_is_and_so_are_all_others(tmp_path: Path) -> None:
    first, second, edits = of_two_files(tmp_path)
    second.chmod(0o444)

    with pytest.raises(LogError, match=r"other\.py cannot be written: it is read-only"):
        apply(edits, tmp_path, edits)
    assert first.read_text() == second.read_text() == PROGRAM
    assert os.listdir(tmp_path / "z") == ["other.py"]


def test_a_file_that_somebody_saves_meanwhile_is_left_as_it_is_and_so_are_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, edits = of_two_files(tmp_path)
    copymode = shutil.copymode

    def saved(*arguments: str) -> None:
        second.write_text(PROGRAM + "# mine\n")
        copymode(*arguments)

    monkeypatch.setattr("shutil.copymode", saved)
    with pytest.raises(LogError, match=r"other\.py was changed while it was edited"):
        apply(edits, tmp_path, edits)
    assert first.read_text() == PROGRAM
    assert second.read_text() == PROGRAM + "# mine\n"
    assert sorted(os.listdir(tmp_path)) == ["model.py", "z"]


def test_a_full_disk_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _, edits = of_two_files(tmp_path)

    def full(*_: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copymode", full)
    with pytest.raises(LogError, match="cannot be written: No space left on device"):
        apply(edits, tmp_path, edits)
    assert first.read_text() == PROGRAM
    assert sorted(os.listdir(tmp_path)) == ["model.py", "z"]


# Their edits take code from other lines of the file than those that they replace.
WITH_CODE_FROM_ELSEWHERE = (
    "programs/a_function_outside",
    "programs/a_loss_before_the_tape_behind_another_statement",
    "programs/a_loss_that_minimize_calls_given_anew",
)


@pytest.mark.parametrize("name", WITH_CODE_FROM_ELSEWHERE)
@pytest.mark.parametrize("alone", [True, False], ids=["instead of the file's", "in front of the file's"])
def test_code_that_only_the_log_has_is_not_written(
    name: str, alone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log of a stranger: its passages read like the file in the lines that are edited, and otherwise not."""
    of, _, short = name.partition("/")
    log = json.loads(group(of)[short])
    passages = log["traces"][0]["passages"]
    unpack(log, tmp_path / "honest")
    edits = [finding.edit for finding in tb_gradflow.open_log(tmp_path / "honest").report().findings if finding.edit]
    kept = {number for edit in edits for number in range(edit.line, edit.end_line + 1)}
    changed = [{**passage, "text": spoiled(passage["text"], passage["line"], kept)} for passage in passages]
    log["traces"][0]["passages"] = changed if alone else [*changed, *passages]
    unpack(log, tmp_path / "strange")
    work = tmp_path / "work"
    files = {passage["file"]: work / passage["file"] for passage in passages}
    for path in files.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(written(passages))
    monkeypatch.chdir(work)

    assert main(["fix", str(tmp_path / "strange"), "--apply"]) in (0, 2)
    assert all("system" not in path.read_text() for path in files.values())

    assert main(["fix", str(tmp_path / "honest"), "--apply"]) == 0, capsys.readouterr().err
    assert all(edit.after in files[edit.file].read_text() for edit in edits)


def spoiled(text: str, line: int, kept: Collection[int]) -> str:
    """Each assigned or returned value becomes another one, except in some lines of the file."""
    lines = text.split("\n")
    value = re.compile(r"^(\s*(?:\w+ = |return ))(.*[^(\[{,\\])$")
    return "\n".join(
        each if line + number in kept else value.sub(r"\1__import__('os').system('id') or \2", each)
        for number, each in enumerate(lines)
    )


def written(passages: Sequence[Mapping[str, Any]]) -> str:
    """The file that has them."""
    lines: dict[int, str] = {}
    for passage in passages:
        for number, each in enumerate([*passage["text"].split("\n"), *passage["after"]], passage["line"]):
            lines.setdefault(number, each)
    return "".join(f"{lines.get(number, '')}\n" for number in range(1, max(lines) + 1))
