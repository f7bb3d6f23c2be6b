"""The parts of the user's files from which an edit may be made: whole top-level statements, unchanged."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from tb_gradflow.record.python import calls_within, lines_of, name_of, names_bound, names_read, targets_of
from tb_gradflow.record.schema import Passage
from tb_gradflow.trace.source.statements import tree_of

# Limits on the characters of one statement, and of all of them: a log is not a copy of the program.
_LONGEST, _MOST = 40_000, 200_000
# The number of context lines of a patch.
_AFTER = 3


@dataclass(frozen=True, slots=True)
class _Statement:
    """A top-level statement.

    Attributes:
        first: Number of its first line, from one.
        last: Number of its last line.
        is_import: Whether it imports something.
        is_lambda: Whether it gives a name to a lambda.
        defines: The names that it assigns, or defines as a function or a class.
        reads: The names that it reads.
        calls: The last parts of the names that it calls: `Dense` for `keras.layers.Dense(...)`.
        words: The string literals in it.
    """

    first: int
    last: int
    is_import: bool
    is_lambda: bool
    defines: frozenset[str]
    reads: frozenset[str]
    calls: frozenset[str]
    words: frozenset[str]


def passages_of(
    lines: Mapping[str, Collection[int]], names: Collection[str], types: Collection[str], in_log: Mapping[str, str]
) -> tuple[Passage, ...]:
    """The statements that contain one of `lines`, statements that these refer to, statements that name a layer or a
    variable, or compile a model, and imports.

    Args:
        lines: By file, the lines of a trace; none for a file that is known to belong to the program.
        names: The names of variables and layers.
        types: The classes of the layers.
        in_log: The name of each file in the log.
    """
    found: list[Passage] = []
    for file, numbers in lines.items():
        text = linecache.getlines(file)
        statements = _statements("".join(text))
        holding = [part for part in statements if any(part.first <= number <= part.last for number in numbers)]
        read = frozenset().union(*(statement.reads for statement in holding))
        # A lambda returns what another statement computes.
        lambdas = [part for part in statements if part.is_lambda and not part.defines.isdisjoint(read)]
        read = read.union(*(statement.reads for statement in lambdas))
        for statement in statements:
            kept = (
                statement.is_import
                or statement in holding
                or not statement.defines.isdisjoint(read)
                or not statement.words.isdisjoint(names)
                or not statement.calls.isdisjoint(types)
                or "compile" in statement.calls
            )
            if kept:
                own = "".join(text[statement.first - 1 : statement.last]).rstrip("\n")
                after = tuple(line.rstrip("\n") for line in text[statement.last : statement.last + _AFTER])
                found.append(Passage(in_log[file], statement.first, own, after))
    return tuple(_within_bounds(found))


def _within_bounds(found: Iterable[Passage]) -> Iterator[Passage]:
    left = _MOST
    for passage in found:
        if len(passage.text) <= min(_LONGEST, left):
            left -= len(passage.text)
            yield passage


@functools.lru_cache(maxsize=64)
def _statements(text: str) -> tuple[_Statement, ...]:
    return tuple(_statement(node) for node in tree_of(text).body)


def _statement(node: ast.stmt) -> _Statement:
    decorators = getattr(node, "decorator_list", [])
    literals = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
    return _Statement(
        first=min(part.lineno for part in (node, *decorators)),
        last=lines_of(node)[-1],
        is_import=isinstance(node, (ast.Import, ast.ImportFrom)),
        is_lambda=isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda),
        defines=frozenset(_defined(node)),
        reads=frozenset(names_read(node)),
        calls=frozenset(name_of(call.func) for call in calls_within(node)),
        words=frozenset(value for value in literals if isinstance(value, str)),
    )


def _defined(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    return names_bound(node) if targets_of(node) else set()
