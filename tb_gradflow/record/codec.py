"""Records to and from plain JSON values. Pure: bytes and files are `store`'s business.

A record becomes an object with a key for each of its fields, a tuple a list, and everything else stays as it
is. Encoders and decoders are built once per class, because a trace may hold tens of thousands of ops.
Keys that a record does not know are ignored, and fields with a default may be missing. Integers have 64 bits, and
texts have at most `MOST_TEXT` characters.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union

Json = Any
"""What `json.loads` gives: None, bool, int, float, str, and lists and objects of these."""

Record = TypeVar("Record")
Convert = Callable[[Any], Any]

MOST_TEXT = 2**17
"""Characters of a name, a line of code or a passage."""

_LARGEST_INT = 2**63 - 1


class MalformedRecord(ValueError):
    """A JSON value that is not the expected record; the message begins with the path, such as `Trace.ops[3]`."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(f"{place}: {problem}")
        self.place = place
        self.problem = problem

    def inside(self, outer: str) -> MalformedRecord:
        """The same error with the path extended by `outer`."""
        return MalformedRecord(outer + self.place, self.problem)


def encode(record: object) -> Json:
    """The record as plain JSON values; NaN and infinities are kept."""
    kind: Any = type(record)
    return _encoder(kind)(record)


def decode(cls: type[Record], value: Json) -> Record:
    """The record that `encode` was given. Raises `MalformedRecord` where the value is not one."""
    kind: Any = cls
    try:
        record: Record = _decoder(kind)(value)
    except MalformedRecord as malformed:
        raise malformed.inside(cls.__name__) from None
    return record


@cache
def _encoder(annotation: Any) -> Convert:
    if is_dataclass(annotation):
        hints = typing.get_type_hints(annotation)
        return _record_encoder([(field.name, _encoder(hints[field.name])) for field in fields(annotation)])
    if typing.get_origin(annotation) is tuple:
        item = _encoder(typing.get_args(annotation)[0])
        return list if item is _same else lambda value: [item(each) for each in value]
    inner = _optional(annotation)
    if inner is not None and (encode_inner := _encoder(inner)) is not _same:
        return lambda value: None if value is None else encode_inner(value)
    return _same


def _record_encoder(members: list[tuple[str, Convert]]) -> Convert:
    def convert_record(record: Any) -> Json:
        return {
            name: getattr(record, name) if convert is _same else convert(getattr(record, name))
            for name, convert in members
        }

    return convert_record


def _same(value: Any) -> Any:
    return value


@cache
def _decoder(annotation: Any) -> Convert:
    if isinstance(annotation, type) and is_dataclass(annotation):
        hints = typing.get_type_hints(annotation)
        members = [(field.name, _decoder(hints[field.name])) for field in fields(annotation)]
        return _record_decoder(annotation, members, _defaults(annotation, hints))
    if typing.get_origin(annotation) is tuple:
        return _tuple_decoder(_decoder(typing.get_args(annotation)[0]))
    if typing.get_origin(annotation) is Literal:
        return _word_decoder(typing.get_args(annotation))
    inner = _optional(annotation)
    if inner is not None:
        decode_inner = _decoder(inner)
        return lambda value: None if value is None else decode_inner(value)
    return _scalar_decoder(annotation)


def _defaults(cls: Any, hints: dict[str, Any]) -> Json:
    """The defaults of the fields that may be missing."""
    optional = [field for field in fields(cls) if field.default is not MISSING]
    return {field.name: _encoder(hints[field.name])(field.default) for field in optional}


def _record_decoder(cls: Callable[..., Any], members: list[tuple[str, Convert]], defaults: Json) -> Convert:
    def convert(value: Json) -> Any:
        if type(value) is not dict:
            raise MalformedRecord("", f"expected an object, got {_kind(value)}")
        given = {**defaults, **value} if defaults else value
        name = ""
        try:
            arguments = []
            for name, member in members:
                arguments.append(member(given[name]))
        except MalformedRecord as malformed:
            raise malformed.inside(f".{name}") from None
        except KeyError:
            missing = ", ".join(each for each, _ in members if each not in given)
            raise MalformedRecord("", f"missing {missing}") from None
        return cls(*arguments)

    return convert


def _tuple_decoder(item: Convert) -> Convert:
    def convert(value: Json) -> tuple[Any, ...]:
        if type(value) is not list:
            raise MalformedRecord("", f"expected a list, got {_kind(value)}")
        items: list[Any] = []
        try:
            for each in value:
                items.append(item(each))
        except MalformedRecord as malformed:
            raise malformed.inside(f"[{len(items)}]") from None
        return tuple(items)

    return convert


def _word_decoder(words: tuple[str, ...]) -> Convert:
    allowed = frozenset(words)

    def convert(value: Json) -> str:
        if type(value) is not str or value not in allowed:
            found = repr(value[:40]) if type(value) is str else _kind(value)
            raise MalformedRecord("", f"expected one of {', '.join(words)}, got {found}")
        return value

    return convert


def _scalar_decoder(scalar: type) -> Convert:
    if scalar not in (str, int, float, bool):
        raise TypeError(f"a record cannot contain {scalar!r}: the codec has no JSON form for it")
    if scalar is int:
        return _integer
    if scalar is str:
        return _text

    def convert(value: Json) -> Any:
        if type(value) is scalar:
            return value
        if scalar is float and type(value) is int:
            return float(_integer(value))
        raise MalformedRecord("", f"expected {scalar.__name__}, got {_kind(value)}")

    return convert


def _text(value: Json) -> str:
    if type(value) is not str:
        raise MalformedRecord("", f"expected str, got {_kind(value)}")
    if len(value) > MOST_TEXT:
        raise MalformedRecord("", f"expected at most {MOST_TEXT} characters, got {len(value)}")
    return value


def _integer(value: Json, least: int = -_LARGEST_INT, most: int = _LARGEST_INT) -> int:
    if type(value) is int:
        if least <= value <= most:
            return value
        # Not the number itself: Python refuses to write one of very many digits.
        raise MalformedRecord("", f"expected an int of at most 64 bits, got one of {value.bit_length()}")
    raise MalformedRecord("", f"expected int, got {_kind(value)}")


def _optional(annotation: Any) -> Any:
    """The type in `X | None`; None for every other annotation."""
    if typing.get_origin(annotation) not in (Union, types.UnionType):
        return None
    [inner] = [each for each in typing.get_args(annotation) if each is not type(None)]
    return inner


def _kind(value: Json) -> str:
    names = {dict: "an object", list: "a list", type(None): "null"}
    if type(value) is str:
        value = value[:40]
    return names.get(type(value)) or f"{type(value).__name__} {value!r:.40}"
