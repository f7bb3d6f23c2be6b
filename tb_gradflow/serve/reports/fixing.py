"""The edits of a run, as one patch, or written into the files that they were made from."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import tokenize
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from tb_gradflow.errors import LogError
from tb_gradflow.record.report import Edit, Finding
from tb_gradflow.record.schema import Passage, Trace
from tb_gradflow.serve.runs.history import Caches, History
from tb_gradflow.serve.terminal.patch import CONTEXT, patch_of
from tb_gradflow.store.directory import DirectoryReader
from tb_gradflow.store.run import StoredRun


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


def made_from_files(log_directory: str, step: int, directory: Path) -> frozenset[Edit]:
    """The edits that are offered if only what the files below `directory` contain is known of the code.

    Whatever else a log says is not made into code. Raises LogError if the log cannot be read.
    """
    history = History(_Verified(DirectoryReader(log_directory), directory), log_directory, Caches())
    findings = history.diagnose(step).findings
    first = [finding.edit for finding in findings if finding.edit is not None]
    return frozenset([*first, *(each.edit for finding in findings for each in finding.alternatives)])


class _Verified(StoredRun):
    """A run whose traces have only those passages that the files below a directory still contain."""

    def __init__(self, reader: DirectoryReader, directory: Path) -> None:
        super().__init__(reader)
        self._directory = directory
        self._files: dict[str, list[str]] = {}

    def trace(self, session: str, index: int, packed: bytes | None = None) -> Trace:
        trace = super().trace(session, index, packed)
        return replace(trace, passages=tuple(each for each in trace.passages if self._contains(each)))

    def _contains(self, passage: Passage) -> bool:
        recorded = passage.text.split("\n")
        return self._lines(passage.file)[passage.line - 1 :][: len(recorded)] == recorded

    def _lines(self, file: str) -> list[str]:
        if file not in self._files:
            try:
                text = _Source.read(_below(file, self._directory)).text
            except LogError:
                text = ""
            self._files[file] = [line.removesuffix("\r") for line in text.split("\n")]
        return self._files[file]


def apply(
    edits: Sequence[Edit], directory: Path, made: Collection[Edit], passages: Sequence[Passage] = ()
) -> list[Path]:
    """Writes the edits into the files below `directory`, all of them or none, and returns these files.

    Raises LogError if a file is not below `directory`, is not a Python file, cannot be read or written, or differs from
    what was recorded, in the lines of the edit or in the passages that contain them; and if an edit is not one of
    those `made` from these files: a log from someone else cannot add code that they do not contain.
    """
    sources: dict[Path, _Source] = {}
    changed: dict[Path, str] = {}
    for edit in sorted(edits, key=lambda edit: (edit.file, -edit.line)):
        path = _below(edit.file, directory)
        if path not in sources:
            sources[path] = _Source.read(path)
            changed[path] = sources[path].text
        _check_around(edit, sources[path].text, passages)
        if edit not in made:
            raise LogError(
                f"{edit.file}:{edit.line}: this edit was made from code that is not in the files below {directory}, or "
                "has changed since. Nothing was changed; record a new run"
            )
        changed[path] = _edited(changed[path], edit)
    _write({sources[path]: text for path, text in changed.items()})
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


@dataclass(frozen=True, slots=True)
class _Source:
    """A Python file.

    Attributes:
        path: Where it is.
        content: Its bytes.
        text: The same as text, with its own line breaks.
        encoding: As Python finds it: by a byte order mark, by a comment in the first lines, or UTF-8.
    """

    path: Path
    content: bytes
    text: str
    encoding: str

    @classmethod
    def read(cls, path: Path) -> _Source:
        """Raises LogError."""
        try:
            content = path.read_bytes()
            encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
            return cls(path, content, content.decode(encoding), encoding)
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
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


def _write(texts: Mapping[_Source, str]) -> None:
    """Atomically: a file is never half written, and none is written if another one cannot be."""
    written: dict[_Source, str] = {}
    try:
        for source, text in texts.items():
            written[source] = _beside(source, text)
        for source in texts:
            if source.path.read_bytes() != source.content:
                raise LogError(f"{source.path} was changed while it was edited. Nothing was changed")
        for source, name in written.items():
            Path(name).replace(source.path)
    except OSError as error:
        where = error.filename or next(iter(texts)).path
        raise LogError(f"{where} cannot be written: {error.strerror or error}") from error
    finally:
        for name in written.values():
            Path(name).unlink(missing_ok=True)


def _beside(source: _Source, text: str) -> str:
    """A new file in the same directory, with the same mode. Raises OSError or LogError."""
    path = source.path
    if not path.stat().st_mode & 0o222 or not os.access(path, os.W_OK):
        raise LogError(f"{path} cannot be written: it is read-only. Nothing was changed")
    try:
        content = text.encode(source.encoding)
    except UnicodeEncodeError as error:
        raise LogError(f"{path} cannot be written: {error}. Nothing was changed") from error
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        shutil.copymode(path, name)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    return name
