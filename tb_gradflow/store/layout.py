"""The storage layout of records in TensorBoard event files: tags, tensors, and the name of the file.

docs/format.md describes it. The writer and the readers both use this module, so their names always match.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import secrets
import time
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tb_gradflow.record.codec import Json
from tb_gradflow.record.schema import FORMAT
from tb_gradflow.store.collecting import without_collections
from tb_gradflow.store.messages import (
    DATA_CLASS_BLOB_SEQUENCE,
    DATA_CLASS_TENSOR,
    DT_DOUBLE,
    DT_FLOAT,
    DT_STRING,
    Event,
    Summary,
    SummaryMetadata,
    TensorProto,
    TensorShapeProto,
)

PLUGIN = "gradflow"
"""TensorBoard's name of this plugin, and of the sub-directory that contains its logs."""

Kind = Literal["session", "trace", "steps", "gradients", "variables", "cost", "values", "trials"]
_KINDS: tuple[Kind, ...] = get_args(Kind)

# An id, and a number that float64 holds exactly.
_SESSION = re.compile("[0-9]{13}", re.ASCII)
_NUMBER = re.compile("[0-9]{1,15}", re.ASCII)

MOST_JSON = 128 * 2**20
"""Bytes of the JSON of one record, unpacked: a trace has some 600 an op."""
MOST_JSON_OF_SESSION = 2**20
MOST_JSON_VALUES = 10_000_000
"""JSON values in one record, counted by its brackets and commas: a trace has about 45 for each op. In memory each takes
about a hundred bytes."""

COST_COLUMNS = ("steps", "recorded", "seconds", "extra", "set_up")
"""Columns of a `cost` tensor: the fields of `record.cost.Cost`."""

FIXED_STEP_COLUMNS = 3
"""Columns of a `steps` tensor before the losses: step, wall time, trace."""


@dataclass(frozen=True, slots=True)
class Tag:
    """The parts of a tag of a log.

    Attributes:
        kind: The kind of record.
        session: Id of the session.
        number: Index of the trace, or first step of the chunk; for a cost, the last recorded step before it was
            written; for values, their step; -1 for a session; for trials, how many such
            records are before it.
    """

    kind: Kind
    session: str
    number: int

    def __str__(self) -> str:
        number = {"session": "", "trace": f"/{self.number}"}.get(self.kind, f"/{self.number:012d}")
        return f"{PLUGIN}/{self.kind}/{self.session}{number}"


def parse_tag(text: str) -> Tag | None:
    """The tag that `text` spells; None if it is not one of ours (a later version may have more kinds)."""
    prefix, *rest = text.split("/")
    if prefix != PLUGIN or len(rest) not in (2, 3):
        return None
    kind = next((each for each in _KINDS if each == rest[0]), None)
    if kind is None or (kind == "session") != (len(rest) == 2) or not _SESSION.fullmatch(rest[1]):
        return None
    if kind == "session":
        return Tag(kind, rest[1], -1)
    tag = Tag(kind, rest[1], int(rest[2])) if _NUMBER.fullmatch(rest[2]) else None
    # Its content will be looked up under the same text.
    return tag if str(tag) == text else None


def event_file_path(log_dir: str) -> str:
    """A new path `<log_dir>/gradflow/events.out.tfevents.….gradflow`.

    The log has its own directory, because TensorBoard's Python loader stops reading a file as soon as another writer
    starts a later file in the same directory (Keras's TensorBoard callback does). For the same reason names sort by
    creation time, to the nanosecond: a second recording may begin within the same second.

    Where TensorBoard's own names contain the host name and the process id, these contain a random number: it reveals
    nothing, and it differs between workers that start at the same time, on any number of machines.
    """
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    name = f"events.out.tfevents.{seconds:010d}.{nanoseconds:09d}.{secrets.token_hex(6)}.{PLUGIN}"
    return os.path.join(log_dir, PLUGIN, name)


def run_name(directory: str) -> str:
    """The displayed name of the run whose event files are in `directory` (with `/`): without our sub-directory."""
    above, _, last = directory.rpartition("/")
    return (above or ".") if last == PLUGIN else directory


def name_of_root(root: str, directory: str, others: Collection[str]) -> str:
    """The displayed name of a run that is the whole log: the name of its directory, because `run_name` has only `.`.

    `root` is the location of the log, a path or an address, empty if unknown; `directory` is relative to it; `others`
    are the names of the other runs.
    """
    here = "(this directory)"
    if not root:
        return here
    path = root if "://" in root else os.path.abspath(os.path.expanduser(root)).replace(os.sep, "/")
    parts = [part for part in (*path.split("/"), directory) if part not in ("", ".")]
    if parts and parts[-1] == PLUGIN:
        parts.pop()
    name = parts[-1] if parts else here
    return f"{name} {here}" if name in others else name


def pack_json(value: Json) -> bytes:
    """Gzipped JSON; equal values give equal bytes."""
    return gzip.compress(json.dumps(value, separators=(",", ":"), allow_nan=False).encode(), mtime=0)


def unpack_json(blob: bytes, most: int = MOST_JSON) -> Json:
    """The value that was passed to `pack_json`, with question marks for what is not Unicode. Raises ValueError if the
    bytes are something else, or more than a program could have recorded."""
    text = unzipped(blob, most)
    values = sum(map(text.count, (b",", b"[", b"{")))
    if values > MOST_JSON_VALUES:
        raise ValueError(f"{values} values, expected at most {MOST_JSON_VALUES}")
    try:
        with without_collections():
            value = json.loads(text.decode(), parse_float=_finite, parse_constant=_no_number)
        if b"\\ud" in text:  # halves of surrogate pairs, of which nothing can be printed or written
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("lists or objects are nested too deeply") from None
    return value


def unzipped(blob: bytes, most: int = MOST_JSON) -> bytes:
    """The bytes of JSON in a blob. Raises ValueError where they are damaged, cut off, or more than `most`."""
    unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        text = unpacker.decompress(blob, most)
        if unpacker.unconsumed_tail:
            raise ValueError(f"more than {most} bytes of JSON")
    except zlib.error as damage:
        raise ValueError(str(damage)) from None
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("its end is missing" if not unpacker.eof else "there is data after its end")
    return text


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large")
    return number


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number in JSON")


def blob_value(tag: Tag, blob: bytes) -> Summary.Value:
    """A blob sequence of one blob. Rank 1: TensorBoard's Rust loader drops all other ranks."""
    tensor = TensorProto(dtype=DT_STRING, tensor_shape=_shape((1,)), string_val=[blob])
    return Summary.Value(tag=str(tag), tensor=tensor, metadata=_metadata(DATA_CLASS_BLOB_SEQUENCE))


def float32_value(tag: Tag, shape: Sequence[int], content: bytes) -> Summary.Value:
    """A tensor of little-endian float32."""
    tensor = TensorProto(dtype=DT_FLOAT, tensor_shape=_shape(shape), tensor_content=content)
    return Summary.Value(tag=str(tag), tensor=tensor, metadata=_metadata(DATA_CLASS_TENSOR))


def float64_value(tag: Tag, shape: Sequence[int], content: bytes) -> Summary.Value:
    """A tensor of little-endian float64."""
    tensor = TensorProto(dtype=DT_DOUBLE, tensor_shape=_shape(shape), tensor_content=content)
    return Summary.Value(tag=str(tag), tensor=tensor, metadata=_metadata(DATA_CLASS_TENSOR))


def event(values: Sequence[Summary.Value], step: int, wall_time: float) -> Event:
    """One record of an event file."""
    return Event(wall_time=wall_time, step=step, summary=Summary(value=values))


def version_event(wall_time: float) -> Event:
    """The record at the beginning of every event file."""
    return Event(wall_time=wall_time, file_version="brain.Event:2")


def _shape(sizes: Sequence[int]) -> TensorShapeProto:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])


def _metadata(data_class: int) -> SummaryMetadata:
    content = json.dumps({"format": FORMAT}).encode()
    plugin_data = SummaryMetadata.PluginData(plugin_name=PLUGIN, content=content)
    return SummaryMetadata(plugin_data=plugin_data, data_class=data_class)
