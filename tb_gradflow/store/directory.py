"""Reads logs from directories, without TensorFlow and without a running TensorBoard; `elsewhere` copies logs from other
filesystems.

Only the steps, and the positions of the other records, are kept in memory. A file that is still being written, or that
was cut off, is read as far as its records are complete, and from there on at the next refresh.
"""

from __future__ import annotations

import logging
import mmap
import os
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from google.protobuf.message import DecodeError
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary

# TensorBoard's own checksum, not TensorFlow's: this imports its stub and loads no TensorFlow.
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c

from tb_gradflow.errors import LogError
from tb_gradflow.store import elsewhere
from tb_gradflow.store.layout import PLUGIN, Tag, parse_tag, run_name
from tb_gradflow.store.run import Array

LOGGER = logging.getLogger("tb_gradflow")

_HEADER = struct.Struct("<QI")
_FOOTER_BYTES = 4
_FLOAT_BYTES = {1: 4, 2: 8}  # of DT_FLOAT and DT_DOUBLE


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a record: a file, and the offset and length of its data in it."""

    path: str
    offset: int
    length: int


def find_runs(root: str) -> dict[str, str]:
    """The runs at or below `root`: name -> directory of its event files. The name is relative to `root`.

    Raises LogError if there is none, with what was found instead.
    """
    if elsewhere.is_elsewhere(root):
        return _named(root, elsewhere.files_below(root), elsewhere.is_event_file)
    path = elsewhere.local_path(root)
    if not os.path.exists(path):
        raise LogError(f"{root} does not exist: expected the directory that was given to GradFlowCallback")
    if not os.path.isdir(path):
        raise LogError(f"{root} is a file: expected the directory that was given to GradFlowCallback")
    return _named(path, ((each, names) for each, _, names in os.walk(path, followlinks=True)), is_event_file)


def _named(root: str, walked: Iterable[tuple[str, list[str]]], is_ours: Callable[[str], bool]) -> dict[str, str]:
    runs: dict[str, str] = {}
    foreign = 0
    for directory, names in walked:
        ours = [name for name in names if is_ours(os.path.join(directory, name))]
        foreign += sum("tfevents" in name for name in names) - len(ours)
        if ours:
            runs[run_name(os.path.relpath(directory, root).replace(os.sep, "/"))] = directory
    if not runs:
        found = f"only event files of other plugins ({foreign})" if foreign else "no event files"
        raise LogError(
            f"{root} holds {found}: expected a log of tb-gradflow. Record one with "
            f'`model.fit(…, callbacks=[tb_gradflow.GradFlowCallback("{root}")])`'
        )
    return dict(sorted(runs.items()))


def is_event_file(path: str) -> bool:
    """Whether a file is one of ours, or a file of a `tf.summary` writer that also contains our records."""
    name = os.path.basename(path)
    return "tfevents" in name and (name.endswith(f".{PLUGIN}") or _mentions_us(path))


def _mentions_us(path: str) -> bool:
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(str(Tag("session", "", -1)).encode()) >= 0


class DirectoryReader:
    """The `TagReader` of one directory of event files, local or on another filesystem."""

    def __init__(self, directory: str) -> None:
        self._copy = elsewhere.Copy(directory) if elsewhere.is_elsewhere(directory) else None
        self._directory = self._copy.path if self._copy else elsewhere.local_path(directory)
        self._places: dict[Tag, Place] = {}
        # Small, and needed for every chunk at once.
        self._steps: dict[Tag, Array] = {}
        self._read_up_to: dict[str, int] = {}
        self._damaged: dict[str, str] = {}

    def tags(self) -> Collection[Tag]:
        if self._copy:
            self._copy.refresh()
        for name in sorted(os.listdir(self._directory)):
            path = os.path.join(self._directory, name)
            if path in self._read_up_to or is_event_file(path):
                self._scan(path)
        if not self._places and self._damaged:
            raise LogError("; ".join(self._damaged.values()))
        return self._places.keys()

    def blob(self, tag: Tag) -> bytes:
        tensor = self._value(tag).tensor
        if len(tensor.string_val) != 1:
            raise LogError(f"damaged log: {tag} holds {len(tensor.string_val)} blobs, expected one")
        return bytes(tensor.string_val[0])

    def arrays(self, tags: Collection[Tag]) -> Mapping[Tag, Array]:
        return {tag: self._steps.get(tag) or _array(tag, self._value(tag)) for tag in tags if tag in self._places}

    def _scan(self, path: str) -> None:
        with open(path, "rb") as file:
            try:
                for place in records(file, path, self._read_up_to.get(path, 0)):
                    for value in _parse(file, place).summary.value:
                        tag = parse_tag(value.tag)
                        if tag is not None:
                            self._places.setdefault(tag, place)
                        if tag is not None and tag.kind == "steps":
                            self._steps.setdefault(tag, _array(tag, value))
                    self._read_up_to[path] = place.offset + place.length + _FOOTER_BYTES
            except LogError as damage:
                # The records before it are valid: TensorBoard's own readers keep them too.
                if path not in self._damaged:
                    self._damaged[path] = str(damage)
                    if self._places:
                        LOGGER.warning("%s; everything before it is read", damage)

    def _value(self, tag: Tag) -> Summary.Value:
        place = self._places[tag]
        with open(place.path, "rb") as file:
            values = _parse(file, place).summary.value
        return next(value for value in values if value.tag == str(tag))


def records(file: BinaryIO, path: str, start: int) -> Iterator[Place]:
    """The positions of complete records from `start` on; a truncated record ends the file.

    Lengths are checked against their checksums, data is not: in Python that takes a second for 8 MB, and the gzipped
    parts have their own checksums.
    """
    size = os.fstat(file.fileno()).st_size
    while start + _HEADER.size <= size:
        file.seek(start)
        header = file.read(_HEADER.size)
        length, checksum = _HEADER.unpack(header)
        if masked_crc32c(header[:8]) != checksum:
            raise LogError(f"{path} is damaged at byte {start}: the length of the record there fails its checksum")
        place = Place(path, start + _HEADER.size, length)
        start = place.offset + length + _FOOTER_BYTES
        if start > size:
            return
        yield place


def _parse(file: BinaryIO, place: Place) -> Event:
    file.seek(place.offset)
    try:
        return Event.FromString(file.read(place.length))
    except DecodeError as damage:
        raise LogError(f"{place.path} is damaged at byte {place.offset}: no event there ({damage})") from damage


def _array(tag: Tag, value: Summary.Value) -> Array:
    tensor = value.tensor
    shape = tuple(int(dim.size) for dim in tensor.tensor_shape.dim)
    expected = _FLOAT_BYTES.get(tensor.dtype, 0)
    for size in shape:
        expected *= size
    if tensor.dtype not in _FLOAT_BYTES or len(tensor.tensor_content) != expected:
        raise LogError(
            f"damaged log: {tag} holds {len(tensor.tensor_content)} bytes, its shape {shape} says {expected}"
        )
    return Array(shape, bytes(tensor.tensor_content))
