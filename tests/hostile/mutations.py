"""Logs that nobody has recorded: real ones with bytes, records or fields changed, by a seed that makes them again."""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.types_pb2 import DT_FLOAT, DT_INT32, DT_STRING
from tensorboard.summary.writer.record_writer import RecordWriter

from tb_gradflow.store.event_file import parse, records
from tb_gradflow.store.layout import parse_tag

HERE = Path(__file__).parent
SEEDS = sorted([*(HERE / "logs").rglob("*tfevents*"), *(HERE.parent / "logs").rglob("*tfevents*")])
NAME = "events.out.tfevents.1700000000.000000000.sample.1.gradflow"

NUMBERS = (-1, -2, 0, 1, 2, 7, 99, 10**4, 10**6, 2**31, 2**40, 2**63 - 1, 2**63, 10**30, -(2**63), -(10**30))
FLOATS = (float("nan"), float("inf"), float("-inf"), -1.0, 0.5, 1e30, -1e30, 1e-40, 3e38, 1e300, 2.5, 1e18)
TEXTS = (
    "", "x", "/", "../../etc", "\u202e", "a" * 100_000, "<b>x</b>", "\x1b[2J\x1b]0;x\x07",
    "`'\"\\", "\x00", "\ud800", "}{%s%n{0}", "(" * 3000, "x = " + "-" * 3000 + "1", "x" + ".a" * 3000,
    "f(" * 200 + ")" * 200, "x = 1\n" * 500, "\r\n", "def f(:\n", "lambda: (yield)", "tf.round(x)", "x[" * 9 + "]" * 9,
    "\u2028", "if x:\n  pass", "tf.where(x > 0, x, tf.round(x))", "@", "tf", "1" * 5000, "'" * 999, "MatMul", "Round",
    "While", "If", "float32", "int32",
)  # fmt: skip


def mutated(seed: int) -> bytes:
    """An event file."""
    chance = random.Random(seed)
    path = chance.choice(SEEDS)
    change = chance.choices((of_bytes, of_records, of_fields), (2, 3, 7))[0]
    return change(path, chance)


def of_bytes(path: Path, chance: random.Random) -> bytes:
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 1, 2, 5, 40))):
        at = chance.randrange(len(content) + 1)
        length = chance.choice((1, 4, 12, 100, 2000))
        kind = chance.randrange(6)
        if kind == 0 and at < len(content):
            content[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            content[at : at + length] = bytes(length)
        elif kind == 2:
            content[at:at] = chance.randbytes(length)
        elif kind == 3:
            del content[at : at + length]
        elif kind == 4:
            content[at:at] = content[chance.randrange(len(content) + 1) :][:length]
        else:
            del content[max(at, 60) :]
    return bytes(content)


def of_records(path: Path, chance: random.Random) -> bytes:
    events = events_of(path)
    for _ in range(chance.choice((1, 1, 2, 3))):
        at = chance.randrange(len(events))
        kind = chance.randrange(4)
        if kind == 0 and len(events) > 1:
            del events[at]
        elif kind == 1:
            events.insert(chance.randrange(len(events) + 1), Event.FromString(events[at].SerializeToString()))
        elif kind == 2:
            chance.shuffle(events)
        else:
            _change_values(events[at], chance)
    return file_of(events)


def _change_values(event: Event, chance: random.Random) -> None:
    event.wall_time = chance.choice((event.wall_time, *FLOATS))
    for value in event.summary.value:
        tensor = value.tensor
        for _ in range(chance.choice((0, 1, 2))):
            kind = chance.randrange(8)
            if kind == 0:
                value.tag = chance.choice(
                    (
                        value.tag[:-1],
                        value.tag + "1",
                        value.tag.replace("1", "x"),
                        value.tag + "9" * 5000,
                        "gradflow/session",
                    )
                )
            elif kind == 1 and tensor.tensor_shape.dim:
                chance.choice(tensor.tensor_shape.dim).size = max(-(2**63), min(2**63 - 1, chance.choice(NUMBERS)))
            elif kind == 2:
                tensor.tensor_shape.dim.add(size=chance.choice((0, 1, 2, -1)))
            elif kind == 3:
                tensor.dtype = chance.choice((DT_FLOAT, DT_INT32, DT_STRING, 99))
            elif kind == 4:
                tensor.tensor_content = _other_floats(tensor.tensor_content, value.tag, chance)
            elif kind == 5:
                tensor.tensor_content = tensor.tensor_content[: chance.randrange(len(tensor.tensor_content) + 1)]
            elif kind == 6 and tensor.string_val:
                tensor.string_val[0] = _other_blob(tensor.string_val[0], chance)
            elif kind == 7:
                del tensor.string_val[:]


def _other_floats(content: bytes, tag: str, chance: random.Random) -> bytes:
    form, size = ("<d", 8) if "/steps/" in tag or "/cost/" in tag else ("<f", 4)
    changed = bytearray(content)
    for _ in range(chance.choice((1, 5, 200))):
        if len(content) >= size:
            number = chance.choice(FLOATS)
            at = chance.randrange(len(content) // size) * size
            changed[at : at + size] = struct.pack(form, number if size == 8 or abs(number) < 3.4e38 else float("inf"))
    return bytes(changed)


def _other_blob(blob: bytes, chance: random.Random) -> bytes:
    kind = chance.randrange(6)
    if kind == 0:
        return blob[: chance.randrange(len(blob))]
    if kind == 1:
        return gzip.compress(
            chance.choice((b"[" * 10**6, b"9" * 10**5, b'{"a":' * 10**5, b"\xff\xfe[1]", b"", b"null", b"[]", b"NaN")),
            mtime=0,
        )
    if kind == 2:
        return gzip.compress(bytes(2**26), 9, mtime=0)
    if kind == 3:
        return gzip.compress(b"[" + b"[],{}," * 10**6 + b"0]", 1, mtime=0)
    if kind == 4:
        return blob + b"rest"
    changed = bytearray(blob)
    changed[chance.randrange(len(blob))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def of_fields(path: Path, chance: random.Random) -> bytes:
    events = events_of(path)
    blobs = [event for event in events for value in event.summary.value if value.tensor.string_val]
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        event = chance.choice(blobs[1:]) if chance.random() < 0.95 else blobs[0]
        tensor = event.summary.value[0].tensor
        record = json.loads(gzip.decompress(tensor.string_val[0]))
        for _ in range(chance.choice((1, 1, 2, 3, 8))):
            _change_field(record, chance)
        text = json.dumps(record)
        tensor.string_val[0] = gzip.compress(text.replace('"OVERFLOW"', "1e999").encode(), 1, mtime=0)
    return file_of(events)


def _change_field(record: Any, chance: random.Random) -> None:
    """Walks down to a random place, and changes what is there."""
    inside: Any = record
    while True:
        keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
        if not keys:
            return
        key = chance.choice(keys)
        below = inside[key]
        if not isinstance(below, (dict, list)) or not below or chance.random() < 0.08:
            break
        inside = below
    changes: list[Callable[[Any], Any]] = [
        _other(below, chance),
        _other(below, chance),
        lambda _: chance.choice((None, True, [], {}, "x", 0, 1.5, [[]], "OVERFLOW")),
    ]
    if isinstance(inside, dict) and chance.random() < 0.05:
        del inside[key]
        return
    inside[key] = chance.choice(changes)(below)


def _other(value: Any, chance: random.Random) -> Callable[[Any], Any]:
    """A change after which the kind is the same."""
    if isinstance(value, bool):
        return lambda _: not value
    if isinstance(value, int):
        return lambda _: chance.choice((*NUMBERS, value + 1, value - 1, value * 2, None))
    if isinstance(value, float):
        return lambda _: chance.choice(FLOATS)
    if isinstance(value, str):
        return lambda _: chance.choice(
            (*TEXTS, value * 2, value[: len(value) // 2], value + "\n" + value, value.upper())
        )
    if isinstance(value, list):
        return lambda _: chance.choice(
            ([], value * 2, value[::-1], value[1:], value[:-1], chance.sample(value, len(value)), value[:1] * 3000)
        )
    if value is None:
        return lambda _: chance.choice((0, 1, -1, 5, "x", 2**40, []))
    return lambda _: {}


def events_of(path: Path) -> list[Event]:
    with path.open("rb") as file:
        return [parse(file, place)[0] for place in records(file, str(path), 0)]


def file_of(events: list[Event]) -> bytes:
    """An event file whose checksums are right."""
    content = io.BytesIO()
    writer = RecordWriter(content)
    for event in events:
        writer.write(event.SerializeToString())
    return content.getvalue()


def kinds_in(path: Path) -> set[str]:
    """The kinds of records that a log has."""
    tags = [parse_tag(value.tag) for event in events_of(path) for value in event.summary.value]
    return {tag.kind for tag in tags if tag is not None}
