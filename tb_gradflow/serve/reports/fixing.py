"""The edits of a run, as one patch, or written into the files that they were made from."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tb_gradflow.errors import LogError
from tb_gradflow.record.report import Edit, Finding
from tb_gradflow.record.schema import Passage
from tb_gradflow.serve.terminal.patch import CONTEXT, patch_of


@dataclass(frozen=True, slots=True)
class Fixes:
    """The edits of a run's findings.

    Attributes:
        edits: By file and line; no two of them change the same line.
        left_out: Edits that conflict with an edit of a more severe finding.
    """

    edits: tuple[Edit, ...]
    left_out: tuple[Edit, ...]


def fixes_of(findings: Iterable[Finding]) -> Fixes:
    """The edits of the errors and warnings, which come most severe first."""
    chosen: list[Edit] = []
    left_out: list[Edit] = []
    for finding in findings:
        edit = finding.edit if finding.severity != "info" else None
        if edit is None or edit in chosen or edit in left_out:
            continue
        (left_out if any(edit.overlaps(other) for other in chosen) else chosen).append(edit)
    return Fixes(tuple(sorted(chosen, key=lambda edit: (edit.file, edit.line))), tuple(left_out))


def patch(edits: Sequence[Edit], passages: Sequence[Passage]) -> str:
    """All edits as one unified diff."""
    written = []
    file, shifted = None, 0
    for edit in _joined(edits, passages):
        is_first = edit.file != file
        file, shifted = edit.file, 0 if is_first else shifted
        written.append(patch_of(edit, passages, shifted, with_header=is_first))
        shifted += len(edit.after.split("\n")) - (edit.end_line - edit.line + 1)
    return "".join(written)


def _joined(edits: Sequence[Edit], passages: Sequence[Passage]) -> list[Edit]:
    """Merges edits that are so close that they share the context lines of a diff."""
    found: list[Edit] = []
    for edit in edits:
        last = found[-1] if found else None
        near = last is not None and last.file == edit.file and edit.line - last.end_line <= 2 * CONTEXT
        between = _lines(last, edit, passages) if near and last is not None else None
        if last is None or between is None:
            found.append(edit)
            continue
        found[-1] = Edit(
            last.file,
            last.line,
            edit.end_line,
            "\n".join([last.before, *between, edit.before]),
            "\n".join([last.after, *between, edit.after]),
        )
    return found


def _lines(one: Edit, other: Edit, passages: Sequence[Passage]) -> list[str] | None:
    """The lines between two edits, if one passage contains both."""
    for passage in passages:
        lines = passage.text.split("\n")
        if passage.file == one.file and passage.line <= one.line and other.end_line < passage.line + len(lines):
            return lines[one.end_line - passage.line + 1 : other.line - passage.line]
    return None


def apply(edits: Sequence[Edit], directory: Path, passages: Sequence[Passage] = ()) -> list[Path]:
    """Writes the edits into the files below `directory`, all of them or none, and returns these files.

    Raises LogError if a file is not below `directory`, is not a Python file, cannot be read or written, or differs from
    what was recorded, in the lines of the edit or in the passages that contain them. Edits are made
    from these passages, so a log from someone else cannot add code that is not in the file.
    """
    changed: dict[Path, str] = {}
    for edit in sorted(edits, key=lambda edit: (edit.file, -edit.line)):
        path = _below(edit.file, directory)
        _check_around(edit, _text(path), passages)
        changed[path] = _edited(changed[path] if path in changed else _text(path), edit)
    for path, text in changed.items():
        _write(path, text)
    return list(changed)


def _check_around(edit: Edit, text: str, passages: Sequence[Passage]) -> None:
    """Raises LogError if none of the passages that contain an edit still reads as it was recorded."""
    around = [
        Edit(each.file, each.line, each.line + each.text.count("\n"), each.text, each.text)
        for each in passages
        if each.file == edit.file and each.line <= edit.line <= each.line + each.text.count("\n")
    ]
    for number, whole in enumerate(around):
        try:
            _edited(text, whole)
        except LogError:
            # If there are several runs, the newest may have been trained with the current file.
            if number + 1 == len(around):
                raise
        else:
            return


def _below(file: str, directory: Path) -> Path:
    """The file itself, where a link leads to it."""
    recorded = PurePosixPath(file)
    try:
        path = directory.joinpath(*recorded.parts).resolve()
    except (OSError, ValueError, RuntimeError) as error:  # an invalid name, or circular links
        raise LogError(f"{file!r:.200} cannot be read: {error}") from error
    inside = directory.resolve() in path.parents
    if recorded.is_absolute() or ".." in recorded.parts or not inside:
        raise LogError(f"{file:.200} is not below {directory}: run the command where the training was started")
    if not os.path.isfile(path):
        raise LogError(f"{file:.200} cannot be read: it is not a file")
    if path.suffix != ".py":
        raise LogError(f"{file:.200} is not a Python file: only Python files can be edited")
    return path


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise LogError(f"{path} cannot be read: {error}") from error


def _edited(text: str, edit: Edit) -> str:
    lines = text.split("\n")
    before = edit.before.split("\n")
    found = [line.removesuffix("\r") for line in lines[edit.line - 1 : edit.end_line]]
    if found != before:
        raise LogError(
            f"{edit.file}:{edit.line} no longer matches what was recorded: expected {before[0].strip()!r}, found "
            f"{found[0].strip() if found else 'the end of the file'!r}. Nothing was changed; record a new run"
        )
    ending = "\r" if lines[edit.line - 1].endswith("\r") else ""
    lines[edit.line - 1 : edit.end_line] = [line + ending for line in edit.after.split("\n")]
    return "\n".join(lines)


def _write(path: Path, text: str) -> None:
    """Atomically, so that a file is never half written."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        shutil.copymode(path, name)
        Path(name).replace(path)
    except OSError as error:
        raise LogError(f"{path} cannot be written: {error.strerror or error}") from error
