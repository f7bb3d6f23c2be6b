"""Event files, record by record: reads the intact records and skips everything else. A file may be truncated, still
growing, have a hole in the middle, or be something else entirely.
"""

from __future__ import annotations

import itertools
import mmap
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from google.protobuf.message import DecodeError

from tb_gradflow.errors import LogError
from tb_gradflow.store.crc32c import in_c, masked, masked_crc32c
from tb_gradflow.store.files import opened
from tb_gradflow.store.layout import PLUGIN, Tag
from tb_gradflow.store.messages import Event

HEADER = struct.Struct("<QI")
FOOTER = struct.Struct("<I")

MOST_BYTES = 2**30
"""Of a record: a chunk of the largest model has a third of that, and a log is full at a quarter."""

# The start of a record: a length below 2**40, its checksum, and the first byte of an event, that of its wall time.
_BEGINNING = re.compile(rb"(?=\0\0\0.{4}\x09)", re.DOTALL)
_BEFORE_ZEROS = 5
_LENGTH_OF_BEGINNING = 8
_MOST_TRIED = 200_000
"""Places in a damaged file that look like the beginning of a record, and are none. More are not tried."""
_MOST_SEARCHED = 2**30
"""Bytes behind a damaged place that are searched for the next record: a hole in a log is smaller than a full log."""
_BLOCK = 2**20


@dataclass(frozen=True, slots=True)
class RecordPosition:
    """The position of a record: a file, and the offset and length of the data."""

    path: str
    offset: int
    length: int

    @property
    def end(self) -> int:
        """Where the next one begins."""
        return self.offset + self.length + FOOTER.size


def is_event_file(path: str) -> bool:
    """Whether a file is one of ours, or one of a `tf.summary` writer that has records of ours as well."""
    name = os.path.basename(path)
    if "tfevents" not in name:
        return False
    is_named_ours = name.endswith(f".{PLUGIN}")
    try:
        with opened(path) as file:
            return is_named_ours or _mentions_us(file)
    except PermissionError:  # whoever reads it says so
        return is_named_ours
    except OSError:  # it has gone, or is no file
        return False


def _mentions_us(file: BinaryIO) -> bool:
    if not os.fstat(file.fileno()).st_size:
        return False
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(str(Tag("session", "", -1)).encode()) >= 0


def records(file: BinaryIO, path: str, start: int) -> Iterator[RecordPosition]:
    """Places of the whole records from `start` on; a record that is cut off ends the file.

    Lengths are checked against their checksums. Raises LogError where one does not fit.
    """
    size = os.fstat(file.fileno()).st_size
    while start + HEADER.size <= size:
        file.seek(start)
        header = file.read(HEADER.size)
        length, checksum = HEADER.unpack(header)
        if masked_crc32c(header[:8]) != checksum:
            raise LogError(f"{path} is damaged at byte {start}: the length of the record there fails its checksum")
        place = RecordPosition(path, start + HEADER.size, length)
        if place.end > size:
            return
        if length > MOST_BYTES:
            raise LogError(
                f"{path} is damaged at byte {start}: a record of {length} bytes, expected at most {MOST_BYTES}"
            )
        start = place.end
        yield place


def next_record(file: BinaryIO, start: int) -> int | None:
    """The start of the first record after `start`, past the damage; None if there is none."""
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for begin in itertools.islice(_beginnings(content, start + 1), _MOST_TRIED):
            length, checksum = HEADER.unpack(content[begin : begin + HEADER.size])
            fits = length <= MOST_BYTES and begin + HEADER.size + length + FOOTER.size <= len(content)
            if fits and masked_crc32c(content[begin : begin + 8]) == checksum:
                return begin
    return None


def _beginnings(content: mmap.mmap, start: int) -> Iterator[int]:
    """Places from `start` on that look like the beginning of a record."""
    end = min(len(content), start + _MOST_SEARCHED)
    nothing = bytes(_BLOCK + _LENGTH_OF_BEGINNING)
    for block in range(start + _BEFORE_ZEROS, end, _BLOCK):
        part = content[block : min(end, block + _BLOCK + _LENGTH_OF_BEGINNING - 1)]
        # A hole in a file is zeros: each of them looks like the beginning of a beginning.
        if part != nothing[: len(part)]:
            yield from (block + found.start() - _BEFORE_ZEROS for found in _BEGINNING.finditer(part))


def parse(file: BinaryIO, place: RecordPosition, *, known: bool = False) -> tuple[Event, str]:
    """The event at that place, and the problem with its bytes, empty if there is none. Raises LogError if there is no
    event.

    The checksum is verified only if it is computed in C and the bytes are not `known` to be intact: in Python it takes
    a second for 8 MB, and the gzipped parts have their own checksums.
    """
    file.seek(place.offset)
    data = file.read(place.length)
    footer = file.read(FOOTER.size)
    problem = ""
    if (
        not known
        and _crc32c is not None
        and (len(footer) != FOOTER.size or masked(_crc32c(data)) != FOOTER.unpack(footer)[0])
    ):
        problem = f"{place.path} is damaged at byte {place.offset}: the record there fails its checksum"
    try:
        return Event.FromString(data), problem
    except DecodeError as damage:
        raise LogError(f"{place.path} is damaged at byte {place.offset}: no event there ({damage})") from damage


_crc32c = in_c()
