"""Plain Python numbers that a compiled step has read: it keeps the values from when it was compiled.

What reads them is found in the code of the functions that the step's ops come from, and their values in the objects and
modules of the program, whose attributes are only looked up, never called.
"""

from __future__ import annotations

import ast
import gc
import math
import sys
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from tb_gradflow.record.python import (
    calls_within,
    lines_of,
    live_in,
    name_of,
    names_bound,
    own_nodes,
    parameters_in,
    parsed,
    targets_of,
)
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
    """The values of what is read, with all objects that may be the one that is."""

    read: _Read
    values: Sequence[tuple[Callable[[], Mapping[str, Any]], float]]

    def news(self) -> tuple[float, float] | None:
        """The value when the step was compiled, and that of now, if it is another one, or if the step should change it.
        Which of several objects the step reads is not known: all have changed, or nothing is said."""
        there = ((value, _number(now().get(self.read.name))) for now, value in self.values)
        known = [(value, now) for value, now in there if now is not None]
        if not known or not (self.read.is_updated or all(now != value for value, now in known)):
            return None
        return known[0]


class KeptNumbers:
    """The numbers that the functions of a step read, as they were when it was compiled."""

    def __init__(self, trace: Trace, captured: Collection[Any] = ()) -> None:
        """`captured` is what the step reads from outside, such as the handles of its variables."""
        self._kept: list[_Kept] = []
        self._told = set[tuple[str, str]]()
        with suppressed():  # the user's classes may be anything
            self._kept = list(_kept(trace, {id(tensor) for tensor in captured}))

    def news(self) -> tuple[KeptNumber, ...]:
        """Those that are others by now, and those that the step itself should change, each once; none if the same ones
        have been returned before."""
        found: dict[tuple[str, str], KeptNumber] = {}
        with suppressed():
            for kept in self._kept:
                read, values = kept.read, kept.news()
                if values is not None:
                    name = f"self.{read.name}" if read.owner else read.name
                    found.setdefault((read.file, name), KeptNumber(name, read.file, read.line, *values))
        is_known = self._told.issuperset(found)
        self._told.update(found)
        return () if is_known else tuple(found.values())


def _number(value: Any) -> float | None:
    """A finite number; `None` for anything else, whose type may have any methods."""
    return float(value) if issubclass(type(value), _NUMBERS) and math.isfinite(value) else None


def _kept(trace: Trace, captured: Collection[int]) -> Iterator[_Kept]:
    reads = list(_reads(trace))
    modules = _modules({read.file for read in reads})
    kinds = {(read.owner, read.file): modules.get(read.file, {}).get(read.owner) for read in reads if read.owner}
    instances = list(instances_of(*(kind for kind in kinds.values() if isinstance(kind, type))))
    for read in reads:
        kind = kinds.get((read.owner, read.file))
        own = [instance for instance in instances if isinstance(kind, type) and issubclass(type(instance), kind)]
        own = [instance for instance in own if _holds(instance, captured)] or own
        module = modules.get(read.file, {})
        holders = [*map(_attributes, own[:_MOST_INSTANCES])] if read.owner else [lambda module=module: module]
        known = [(now, value) for now in holders if (value := _number(now().get(read.name))) is not None]
        if known:
            yield _Kept(read, known)


def _holds(instance: Any, captured: Collection[int]) -> bool:
    """Whether an object holds one of these: another model of the same class holds none of the step's variables."""
    known, reached = set[int](), [instance]
    while reached and len(known) < _MOST_HELD:
        new = {id(value): value for value in gc.get_referents(*reached) if not issubclass(type(value), _OF_ALL)}
        if not captured or not new.keys().isdisjoint(captured):
            return bool(captured)
        reached = [value for number, value in new.items() if number not in known]
        known.update(new)
    return False


_MOST_HELD = 10_000
_OF_ALL = (type, ModuleType, FunctionType, MethodType, FrameType)
"""What refers to objects that others hold."""


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
        for function in functions():
            if is_users(function.__code__.co_filename):
                found.setdefault(path_in_log(function.__code__.co_filename, working_directory()), function.__globals__)
    return found


def _reads(trace: Trace) -> Iterator[_Read]:
    for passage in trace.passages:
        ran = {source.line - passage.line + 1 for source in trace.sources if source.file == passage.file}
        tree = parsed(passage.text)
        listed = list(_functions(tree)) if tree is not None else []
        running = [function for function in listed if not ran.isdisjoint(_own_lines(function.node))]
        inner = {function.node.name for function in running if not function.node.decorator_list}
        within = _with_called(running, listed)
        around = [function for function in listed if not inner.isdisjoint(_called_in(function.node))]
        for owner, node, outer in running:
            of_self = bool(owner)
            for name, (line, is_updated) in _read_in(node, outer, of_self=of_self).items():
                # What a step sets has no value from before. What calls its parts may be the loop around it: a counter
                # that is set there may count what is done in one step.
                others = (other for other in ([*within, *around] if is_updated else within) if other.owner == owner)
                if not any(name in _set_anew(other.node, of_self=of_self) for other in others):
                    yield _Read(owner, name, passage.file, line + passage.line - 1, is_updated)


class _Function(NamedTuple):
    """A function, with the class that it is a method of, and the names of the functions around it."""

    owner: str
    node: ast.FunctionDef
    outer: frozenset[str]


def _with_called(functions: Sequence[_Function], listed: Sequence[_Function]) -> list[_Function]:
    """With those that they may call, and so on."""
    found = list(functions)
    for function in found:  # grows
        called = _called_in(function.node)
        found += (other for other in listed if other.node.name in called and other not in found)
    return found


def _functions(tree: ast.Module) -> Iterator[_Function]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield from _with_inner("", node, frozenset())
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    yield from _with_inner(node.name, member, frozenset())


def _with_inner(owner: str, function: ast.FunctionDef, outer: frozenset[str]) -> Iterator[_Function]:
    yield _Function(owner, function, outer)
    names = outer | _names_of(function)
    for inner in _inner(function):
        yield from _with_inner(owner, inner, names)


def _inner(function: ast.FunctionDef) -> Iterator[ast.FunctionDef]:
    inside = own_nodes(function, (ast.FunctionDef, ast.ClassDef))
    return (node for node in inside if isinstance(node, ast.FunctionDef))


def _own_lines(function: ast.FunctionDef) -> set[int]:
    """Without those of functions inside."""
    return set(lines_of(function)).difference(*map(lines_of, _inner(function)))


def _names_of(function: ast.FunctionDef) -> set[str]:
    """The names that belong to a function, or to one inside."""
    shared = (node.names for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal)))
    return parameters_in(function) | names_bound(function).difference(*shared)


def _called_in(function: ast.FunctionDef) -> set[str]:
    return {name_of(call.func) for call in calls_within(function)}


def _set_anew(function: ast.FunctionDef, *, of_self: bool) -> set[str]:
    """What a function sets whenever it runs, and has not read before, such as a counter that begins at zero. What an
    `__init__` sets is from before all steps."""
    found, read = set[str](), set[str]()

    def visit(statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if isinstance(statement, ast.With):
                visit(statement.body)
                continue
            names = {name for node in ast.walk(statement) if (name := _name(node, of_self=of_self))}
            if isinstance(statement, ast.Assign):
                read.update(name for node in ast.walk(statement.value) if (name := _name(node, of_self=of_self)))
                found.update({_name(node, of_self=of_self) for node in statement.targets} - read)
            read.update(names)

    if function.name not in ("__init__", "build"):
        visit(function.body)
    return found - {""}


def _read_in(function: ast.FunctionDef, outer: Collection[str], *, of_self: bool) -> dict[str, tuple[int, bool]]:
    """What a function reads: attributes of `self`, or else names that are not its own, or those of the functions around
    it. For each the first line that does, and whether the function updates it. What is called, only read to be updated,
    or read by Python code that runs in each step, counts for nothing."""
    own = set[str]() if of_self else {*outer, *_names_of(function)}
    called, live = {call.func for call in calls_within(function)}, live_in(function)
    first: dict[str, int] = {}
    updated = set[str]()

    def visit(node: ast.AST, targets: frozenset[str]) -> None:
        if node in live:
            return
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = frozenset(name for target in targets_of(node) if (name := _name(target, of_self=of_self)))
            updated.update(targets if isinstance(node, ast.AugAssign) else ())
        name = _name(node, of_self=of_self)
        if name and isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            if name in targets:
                updated.add(name)
            elif node not in called:
                first.setdefault(name, node.lineno)
        for child in ast.iter_child_nodes(node):
            visit(child, targets)

    for statement in function.body:
        visit(statement, frozenset())
    return {name: (line, name in updated) for name, line in first.items() if name not in own}


def _name(node: ast.AST, *, of_self: bool) -> str:
    if not of_self:
        return node.id if isinstance(node, ast.Name) else ""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return ""
