"""Reads logs from directories, without TensorFlow and without a running TensorBoard; `elsewhere` copies logs from other
filesystems.

Only the steps, and the positions of the other records, are kept in memory. A file that is still being written, or that
was cut off, is read as far as its records are complete, and from there on at the next refresh.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, BinaryIO

from tb_gradflow.errors import DamagedRecord, LogError
from tb_gradflow.plain import text_of_path
from tb_gradflow.store import elsewhere
from tb_gradflow.store.chunks import Array
from tb_gradflow.store.event_file import RecordPosition, is_event_file, next_record, parse, records
from tb_gradflow.store.files import opened, walked
from tb_gradflow.store.hyperparameters import Hyperparameters, below
from tb_gradflow.store.layout import Tag, parse_tag, run_name
from tb_gradflow.store.messages import DT_DOUBLE, DT_FLOAT, Event, Summary
from tb_gradflow.store.warning import warn_of

_MOST_DIMENSIONS = 8

_BEGINNING = 64
"""Bytes at the beginning of a file that hold the time at which its recording began: no two files have the same."""


def find_runs(root: str) -> dict[str, str]:
    """The runs at or below `root`: name -> directory of its event files. The name is relative to `root`.

    Raises LogError if there is none, with what was found instead.
    """
    if elsewhere.is_elsewhere(root):
        return _named(root, elsewhere.files_below(root), elsewhere.is_event_file)
    path = elsewhere.local_path(root)
    if not os.path.exists(path):
        raise LogError(f"{root} does not exist: expected the directory that was given to the recorder")
    if not os.path.isdir(path):
        raise LogError(f"{root} is a file: expected the directory that was given to the recorder")
    return _named(path, walked(path), is_event_file)


def _named(root: str, walked: Iterable[tuple[str, list[str]]], is_ours: Callable[[str], bool]) -> dict[str, str]:
    runs: dict[str, str] = {}
    foreign = 0
    for directory, names in walked:
        ours = [name for name in names if is_ours(os.path.join(directory, name))]
        foreign += sum("tfevents" in name for name in names) - len(ours)
        if ours:
            runs[run_name(_below(root, directory))] = directory
    if not runs:
        found = f"only event files of other plugins ({foreign})" if foreign else "no event files"
        raise LogError(
            f"{root} holds {found}: expected a log of tb-gradflow. Record one with "
            f'`model.fit(…, callbacks=[tb_gradflow.GradFlowCallback("{root}")])`'
        )
    return dict(sorted(runs.items()))


def _below(root: str, directory: str) -> str:
    """A directory relative to the root, as TensorBoard names a run."""
    return text_of_path(os.path.relpath(directory, root)).replace(os.sep, "/")


class DirectorySource:
    """The `Source` of a directory of runs, for a server without TensorBoard."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._readers: dict[str, DirectoryReader] = {}
        self._lock = threading.Lock()

    def runs(self, context: Any = None, experiment_id: str = "") -> dict[str, Collection[Tag]]:
        """Raises LogError if there is none any more."""
        root = self._root if elsewhere.is_elsewhere(self._root) else elsewhere.local_path(self._root)
        found: dict[str, Collection[Tag]] = {}
        for directory in find_runs(self._root).values():
            run = _below(root, directory)
            with self._lock:
                if run not in self._readers:
                    self._readers[run] = DirectoryReader(directory)
            with suppress(LogError):  # if nothing of it can be read, it has no session either
                found[run] = self._readers[run].tags()
        return {run: tags for run, tags in sorted(found.items()) if any(tag.kind == "session" for tag in tags)}

    def has(self, context: Any, experiment_id: str, run: str) -> bool:
        return run in self.runs()

    def reader(self, context: Any, experiment_id: str, run: str) -> DirectoryReader:
        return self._readers[run]

    def hyperparameters(self, context: Any, experiment_id: str) -> Mapping[str, Hyperparameters]:
        return below(elsewhere.local_path(self._root))


class DirectoryReader:
    """The `TagReader` of one directory of event files, local or on another filesystem."""

    def __init__(self, directory: str) -> None:
        self._copy = elsewhere.Copy(directory) if elsewhere.is_elsewhere(directory) else None
        self._directory = self._copy.path if self._copy else elsewhere.local_path(directory)
        self._places: dict[Tag, RecordPosition] = {}
        # Small, and needed for every chunk at once.
        self._steps: dict[Tag, Array] = {}
        self._read_up_to: dict[str, int] = {}
        self._beginnings: dict[str, bytes] = {}
        # By file and place.
        self._damaged: dict[tuple[str, int], str] = {}
        # By file: from where, and up to which size, nothing that is whole was found.
        self._searched: dict[str, tuple[int, int]] = {}
        # A server reads from several threads.
        self._lock = threading.Lock()

    def tags(self) -> Collection[Tag]:
        with self._lock:
            self._refresh()
            return self._places.copy().keys()  # in the order of the file

    def _refresh(self) -> None:
        if self._copy:
            self._copy.refresh()
        for name in self._names():
            path = os.path.join(self._directory, name)
            if path in self._read_up_to or is_event_file(path):
                self._scan(path)
        if not self._places and self._damaged:
            raise LogError("; ".join(self._damaged.values()))

    def problems(self) -> Collection[str]:
        return self._damaged.values()

    def blob(self, tag: Tag) -> bytes:
        tensor = self._value(tag).tensor
        if len(tensor.string_val) != 1:
            raise DamagedRecord(f"damaged log: {tag} holds {len(tensor.string_val)} blobs, expected one")
        return bytes(tensor.string_val[0])

    def arrays(self, tags: Collection[Tag]) -> Mapping[Tag, Array]:
        return {tag: self._steps.get(tag) or self._array(tag) for tag in tags if tag in self._places}

    def _array(self, tag: Tag) -> Array:
        try:
            return _array(tag, self._value(tag))
        except DamagedRecord as damage:
            return Array((), b"", str(damage))

    def _names(self) -> list[str]:
        try:
            return sorted(os.listdir(self._directory))
        except OSError as error:
            raise LogError(f"{self._directory} cannot be read: {error.strerror or error}") from error

    def _scan(self, path: str) -> None:
        start = self._read_up_to.get(path, 0)
        try:
            with opened(path) as file:
                beginning = file.read(_BEGINNING)
                known = self._beginnings.get(path, b"")
                if os.fstat(file.fileno()).st_size < start or not beginning.startswith(known):
                    # Somebody put another file in its place, or cut it off.
                    self._forget(path)
                    start = 0
                self._beginnings[path] = beginning
                while (behind := self._scan_whole(file, path, start)) is not None:
                    start = behind
        except OSError as error:
            self._note(path, start, f"{path} cannot be read: {error.strerror or error}")

    def _scan_whole(self, file: BinaryIO, path: str, start: int) -> int | None:
        """Reads until the end, or until a damaged part; returns where it continues after that."""
        try:
            for place in records(file, path, start):
                self._keep(file, place)
                start = self._read_up_to[path] = place.end
            return None
        except LogError as damage:
            looked = (start, os.fstat(file.fileno()).st_size)
            if self._searched.get(path) == looked:
                return None
            behind = next_record(file, start)
            if behind is None:
                self._searched[path] = looked
                self._note(path, start, str(damage), "what comes before it is read")
                return None
            self._note(path, start, f"{damage}; up to byte {behind}", "what comes before and after it is read")
            self._read_up_to[path] = behind
            return behind

    def _keep(self, file: BinaryIO, place: RecordPosition) -> None:
        try:
            event, problem = parse(file, place)
        except LogError as damage:
            event, problem = Event(), str(damage)
        if problem:
            # Its length is right, so that the next one is where it should be.
            self._note(place.path, place.offset, problem, "the others are read")
        for value in event.summary.value:
            tag = parse_tag(value.tag)
            if tag is not None:
                self._places.setdefault(tag, place)
            if tag is not None and tag.kind == "steps":
                self._steps.setdefault(tag, _array(tag, value, problem))

    def _forget(self, path: str) -> None:
        for tag in [tag for tag, place in self._places.items() if place.path == path]:
            del self._places[tag]
            self._steps.pop(tag, None)
        self._damaged = {key: problem for key, problem in self._damaged.items() if key[0] != path}
        self._read_up_to.pop(path, None)
        self._searched.pop(path, None)

    def _note(self, path: str, at: int, problem: str, rest: str = "") -> None:
        if (path, at) not in self._damaged:
            self._damaged[path, at] = problem
            if self._places:
                warn_of(f"{problem}; {rest}" if rest else problem, len(self._damaged))

    def _value(self, tag: Tag) -> Summary.Value:
        place = self._places[tag]
        try:
            with opened(place.path) as file:
                event, problem = parse(file, place, known=(place.path, place.offset) not in self._damaged)
        except OSError as error:
            raise LogError(f"{place.path} cannot be read: {error.strerror or error}") from error
        if problem:
            raise DamagedRecord(f"{problem}: {tag} was there; copy the log again, or record a new run")
        for value in event.summary.value:
            if value.tag == str(tag):
                return value
        raise LogError(f"{place.path} was changed while it was read: {tag} is no longer at byte {place.offset}")


def _array(tag: Tag, value: Summary.Value, problem: str = "") -> Array:
    if problem:
        return Array((), b"", f"{problem}: {tag} was there")
    tensor = value.tensor
    expected = DT_DOUBLE if tag.kind in ("steps", "cost") else DT_FLOAT
    if tensor.dtype != expected:
        return Array((), b"", f"damaged log: {tag} is of type {tensor.dtype}, expected {expected}")
    if len(tensor.tensor_shape.dim) > _MOST_DIMENSIONS:
        return Array((), b"", f"damaged log: {tag} has {len(tensor.tensor_shape.dim)} dimensions")
    return Array(tuple(int(dim.size) for dim in tensor.tensor_shape.dim), bytes(tensor.tensor_content))
