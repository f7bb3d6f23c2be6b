"""Logs that nobody has recorded: real ones with bytes, records or fields changed, by a seed that makes them again."""

from __future__ import annotations

import functools
import gzip
import io
import json
import math
import random
import struct
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.types_pb2 import DT_FLOAT, DT_INT32, DT_STRING
from tensorboard.summary.writer.record_writer import RecordWriter

from tb_gradflow.store.event_file import parse, records
from tb_gradflow.store.layout import parse_tag
from tests.recordings.logs import group, groups, unpack

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
    change = chance.choices((of_bytes, of_records, of_fields, of_meaning), (2, 3, 7, 12))[0]
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


def of_meaning(_path: Path, chance: random.Random) -> bytes:
    """One of the thousand logs of `tests/recordings`, in which most fields stay possible: a value is replaced by one of
    another field of that name, so that rules meet what no program does."""
    with tempfile.TemporaryDirectory() as directory:
        of, name = chance.choice(_recorded())
        unpack(json.loads(group(of)[name]), Path(directory))
        [path] = Path(directory).rglob("*tfevents*")
        events = events_of(path)
    for _ in range(chance.choice((1, 1, 2))):
        if chance.random() < 0.75:
            blobs = [event for event in events for value in event.summary.value if value.tensor.string_val]
            tensor = chance.choice(blobs[1:]).summary.value[0].tensor
            record = json.loads(gzip.decompress(tensor.string_val[0]))
            _exchange(record, chance)
            tensor.string_val[0] = gzip.compress(json.dumps(record).encode(), 1, mtime=0)
        else:
            values = [value for event in events for value in event.summary.value if value.tensor.tensor_content]
            value = chance.choice(values) if values else None
            if value is not None:
                value.tensor.tensor_content = _exchanged(value.tensor.tensor_content, value.tag, chance)
    return file_of(events)


@functools.cache
def _recorded() -> list[tuple[str, str]]:
    return [(of, name) for of in groups() for name in group(of)]


def _exchange(record: Any, chance: random.Random) -> None:
    """Replaces values, and lists, by others of the same field."""
    places: dict[str, list[tuple[Any, Any]]] = {}
    _collect(record, "", places)
    for _ in range(chance.choice((1, 2, 4, 10, 30))):
        alike = places[chance.choice(sorted(places))]
        (inside, key), (other, place) = chance.choice(alike), chance.choice(alike)
        old, new = inside[key], other[place]
        if isinstance(old, list):
            new = chance.choice((old[:-1], old[::-1], old + old[:1], [], new))
        elif chance.random() < 0.3:
            new = _near(old, chance)
        inside[key] = json.loads(json.dumps(new))


def _near(value: Any, chance: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + chance.choice((-1, 1, 2))
    if isinstance(value, float):
        return chance.choice((0.0, -1.0, 1e-30, 1e30, -value, 2 * value))
    if isinstance(value, str):
        return chance.choice(("", value[:-1], f"{value}_1", value.upper()))
    return chance.choice((None, 0, 1))


def _collect(value: Any, name: str, places: dict[str, list[tuple[Any, Any]]]) -> None:
    """The places of each field, by its name. Members of lists have that of the list."""
    members: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in members:
        called = str(key) if isinstance(value, dict) else f"{name}[]"
        if not isinstance(each, dict):
            places.setdefault(called, []).append((value, key))
        if isinstance(each, (dict, list)):
            _collect(each, called, places)


def _exchanged(content: bytes, tag: str, chance: random.Random) -> bytes:
    form, size = ("d", 8) if "/steps/" in tag or "/cost/" in tag else ("f", 4)
    numbers = list(struct.unpack(f"<{len(content) // size}{form}", content))
    for _ in range(chance.choice((1, 5, 50, len(numbers)))):
        other = chance.choice((chance.choice(numbers), chance.choice((0.0, 1.0, math.nan, math.inf, 1e30, 1e-38))))
        numbers[chance.randrange(len(numbers))] = other
    return struct.pack(f"<{len(numbers)}{form}", *numbers)


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
