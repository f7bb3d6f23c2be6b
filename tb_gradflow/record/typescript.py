"""The record types as TypeScript, so that the page cannot disagree with the log: `frontend/src/record.ts`.

`python -m tb_gradflow.record.typescript` prints it. Records with raw bytes are left out, because arrays are not sent as
JSON.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union

from tb_gradflow.record import answers, graph, report, schema, terms

HEADER = """\
/**
 * Written by `python -m tb_gradflow.record.typescript` from the Python records. Do not edit.
 */
"""
WIDTH = 120

_SCALARS = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}


def typescript() -> str:
    """The whole module."""
    parts: dict[str, str] = {}
    for module in (graph, answers, terms, schema, report):
        # A type that one module imports from another is declared once.
        parts = parts | {name: part for name, part in _declarations(module) if name not in parts}
    return HEADER + "".join(f"\n{part}" for part in parts.values())


def _declarations(module: types.ModuleType) -> Iterator[tuple[str, str]]:
    aliases = _aliases(schema) | _aliases(report)
    for name, value in vars(module).items():
        if isinstance(value, type) and is_dataclass(value) and value.__module__ == module.__name__:
            if not _has_bytes(value):
                yield name, _interface(value, aliases)
        elif name.isupper():
            yield name, f"export const {name} = {_constant(value)};\n"
        elif typing.get_origin(value) is Literal:
            yield name, f"export type {name} =\n{_union(value, separator=chr(10))};\n"


def _aliases(module: types.ModuleType) -> dict[Any, str]:
    """The type aliases of a module that are a choice of strings."""
    return {value: name for name, value in vars(module).items() if typing.get_origin(value) is Literal}


def _has_bytes(record: type) -> bool:
    """Whether the record, or a record inside it, contains raw bytes."""
    return any(_mentions_bytes(hint) for hint in typing.get_type_hints(record).values())


def _mentions_bytes(hint: Any) -> bool:
    if isinstance(hint, type) and is_dataclass(hint):
        return _has_bytes(hint)
    return hint is bytes or any(_mentions_bytes(inner) for inner in typing.get_args(hint) if inner is not hint)


def _interface(record: type, aliases: dict[Any, str]) -> str:
    summary, described = _documentation(record)
    hints = typing.get_type_hints(record)
    lines = [*_comment(summary, ""), f"export interface {record.__name__} {{"]
    for field in fields(record):
        lines += _comment(described.get(field.name, ""), "  ")
        lines.append(f"  readonly {field.name}: {_type(hints[field.name], aliases)};")
    return "\n".join([*lines, "}", ""])


def _documentation(record: type) -> tuple[str, dict[str, str]]:
    """The docstring of the record, and of each of its attributes."""
    summary, _, attributes = (inspect.getdoc(record) or "").partition("\nAttributes:\n")
    entries = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", attributes, flags=re.MULTILINE)
    return summary.strip(), {name: re.sub(r"\s+", " ", text) for name, text in entries}


def _comment(text: str, indent: str) -> list[str]:
    if not text:
        return []
    one_line = f"{indent}/** {text} */"
    if "\n" not in text and len(one_line) <= WIDTH:
        return [one_line]
    body = [line.rstrip() for line in _wrapped(text, WIDTH - len(indent) - 3)]
    return [f"{indent}/**", *(f"{indent} * {line}".rstrip() for line in body), f"{indent} */"]


def _wrapped(text: str, width: int) -> Iterator[str]:
    for line in text.splitlines():
        current = ""
        for word in line.split(" "):
            if current and len(current) + 1 + len(word) > width:
                yield current
                current = word
            else:
                current = f"{current} {word}" if current else word
        yield current


def _type(hint: Any, aliases: dict[Any, str]) -> str:
    if hint in aliases:
        return aliases[hint]
    origin = typing.get_origin(hint)
    if origin is Literal:
        return _union(hint, separator=" ")
    if origin is tuple:
        inner = _type(typing.get_args(hint)[0], aliases)
        return f"readonly ({inner})[]" if " " in inner else f"readonly {inner}[]"
    if origin in (Union, types.UnionType):
        return " | ".join(_type(inner, aliases) for inner in typing.get_args(hint))
    if isinstance(hint, type) and is_dataclass(hint):
        return hint.__name__
    return _SCALARS[hint]


def _union(hint: Any, separator: str) -> str:
    words = [f'"{word}"' for word in typing.get_args(hint)]
    if separator == "\n":
        return "\n".join(f"  | {word}" for word in words)
    return " | ".join(words)


def _constant(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(f'"{word}"' for word in value) + "] as const"
    return repr(value)


if __name__ == "__main__":
    sys.stdout.write(typescript())
