"""Plain Python numbers that a compiled step has read: it keeps the values from when it was compiled.

What reads them is found in the code of the functions that the step's ops come from, and their values in the objects and
modules of the program, whose attributes are only looked up, never called.
"""

from __future__ import annotations

import ast
import math
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tb_gradflow.record.python import module_of
from tb_gradflow.record.schema import KeptNumber, Trace
from tb_gradflow.trace.protection.foreign import suppressed
from tb_gradflow.trace.protection.living_objects import functions, instances_of
from tb_gradflow.trace.source.user_line import is_users, path_in_log, working_directory

_MOST_INSTANCES = 100

_NUMBERS = (int, float, np.integer, np.floating)


@dataclass(frozen=True, slots=True)
class _Read:
    """Code that reads an attribute of `self`, or a name of its module.

    Attributes:
        owner: The class whose method it is in; empty for a function of the module.
        name: Of the attribute or the name.
        file: As in the log.
        line: The first that reads it.
        is_updated: Whether the same function computes it anew from itself, as a counter.
    """

    owner: str
    name: str
    file: str
    line: int
    is_updated: bool


@dataclass(frozen=True, slots=True)
class _Kept:
    read: _Read
    now: Callable[[], Mapping[str, Any]]
    value: float


class KeptNumbers:
    """The numbers that the functions of a step read, as they were when it was compiled."""

    def __init__(self, trace: Trace) -> None:
        self._kept: list[_Kept] = []
        self._told = set[tuple[str, str]]()
        with suppressed():  # the user's classes may be anything
            self._kept = list(_kept(trace))

    def news(self) -> tuple[KeptNumber, ...]:
        """Those that are others by now, and those that the step itself should change, each once; none if the same ones
        have been returned before."""
        found: dict[tuple[str, str], KeptNumber] = {}
        with suppressed():
            for each in self._kept:
                read = each.read
                now = _number(each.now().get(read.name))
                if now is not None and (read.is_updated or now != each.value):
                    name = f"self.{read.name}" if read.owner else read.name
                    found.setdefault((read.file, name), KeptNumber(name, read.file, read.line, each.value, now))
        is_known = self._told.issuperset(found)
        self._told.update(found)
        return () if is_known else tuple(found.values())


def _number(value: Any) -> float | None:
    """A finite number; `None` for anything else, whose type may have any methods."""
    return float(value) if issubclass(type(value), _NUMBERS) and math.isfinite(value) else None


def _kept(trace: Trace) -> Iterator[_Kept]:
    reads = list(_reads(trace))
    modules = _modules({each.file for each in reads})
    kinds = {(each.owner, each.file): modules.get(each.file, {}).get(each.owner) for each in reads if each.owner}
    instances = list(instances_of(*(each for each in kinds.values() if isinstance(each, type))))
    for read in reads:
        kind = kinds.get((read.owner, read.file))
        own = [each for each in instances if isinstance(kind, type) and issubclass(type(each), kind)]
        module = modules.get(read.file, {})
        for now in map(_attributes, own[:_MOST_INSTANCES]) if read.owner else [lambda module=module: module]:
            if (value := _number(now().get(read.name))) is not None:
                yield _Kept(read, now, value)


def _attributes(instance: Any) -> Callable[[], Mapping[str, Any]]:
    held = weakref.ref(instance)

    def attributes() -> Mapping[str, Any]:
        there = held()
        return {} if there is None else dict(object.__getattribute__(there, "__dict__"))

    return attributes


def _modules(files: set[str]) -> dict[str, dict[str, Any]]:
    """The names of the modules with these files; those of a notebook's cells are all in one module."""
    found: dict[str, dict[str, Any]] = {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and is_users(file):
            found.setdefault(path_in_log(file, working_directory()), vars(module))
    if not files <= set(found):  # a file that was run by its path, without a module
        for each in functions():
            if is_users(each.__code__.co_filename):
                found.setdefault(path_in_log(each.__code__.co_filename, working_directory()), each.__globals__)
    return found


def _reads(trace: Trace) -> Iterator[_Read]:
    for passage in trace.passages:
        lines = {each.line - passage.line + 1 for each in trace.sources if each.file == passage.file}
        try:
            tree = module_of(passage.text)
        except SyntaxError:
            continue
        for owner, function in _functions(tree):
            if not lines.isdisjoint(range(function.lineno, (function.end_lineno or function.lineno) + 1)):
                for name, (line, is_updated) in _read_in(function, of_self=bool(owner)).items():
                    yield _Read(owner, name, passage.file, line + passage.line - 1, is_updated)


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield "", node
        elif isinstance(node, ast.ClassDef):
            yield from ((node.name, each) for each in node.body if isinstance(each, ast.FunctionDef))


def _read_in(function: ast.FunctionDef, *, of_self: bool) -> dict[str, tuple[int, bool]]:
    """What a function reads: attributes of `self`, or else names that are not its own. For each the first line that
    does, and whether the function updates it. What is called, or only read to be updated, counts for nothing."""
    nodes = list(ast.walk(function))
    shared = {name for each in nodes if isinstance(each, (ast.Global, ast.Nonlocal)) for name in each.names}
    own = set[str]()
    if not of_self:
        own |= {each.arg for each in nodes if isinstance(each, ast.arg)}
        own |= {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)} - shared
    called = {each.func for each in nodes if isinstance(each, ast.Call)}
    first: dict[str, int] = {}
    updated = set[str]()

    def visit(node: ast.AST, targets: frozenset[str]) -> None:
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            listed = node.targets if isinstance(node, ast.Assign) else [node.target]
            targets = frozenset(name for each in listed if (name := _name(each, of_self=of_self)))
            updated.update(targets if isinstance(node, ast.AugAssign) else ())
        name = _name(node, of_self=of_self)
        if name and isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            if name in targets:
                updated.add(name)
            elif node not in called:
                first.setdefault(name, node.lineno)
        for each in ast.iter_child_nodes(node):
            visit(each, targets)

    for statement in function.body:
        if isinstance(statement, ast.Assign):  # what is set anew each time has no value from before
            own |= {_name(each, of_self=of_self) for each in statement.targets} - {*first, *updated}
        visit(statement, frozenset())
    return {name: (line, name in updated) for name, line in first.items() if name not in own}


def _name(node: ast.AST, *, of_self: bool) -> str:
    if not of_self:
        return node.id if isinstance(node, ast.Name) else ""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return ""
