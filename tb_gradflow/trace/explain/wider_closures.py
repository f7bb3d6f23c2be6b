"""Functions whose edited code reads other variables of the enclosing function than the code in memory.

A function in memory keeps the cells that it was created with. So additional variables of the edited code are put
temporarily into the function's globals, and variables that it no longer reads are named in code that never runs. The
values are those of the enclosing function, if it is running; else those that another of its nested functions keeps, or
a variable of the step.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FrameType, FunctionType
from typing import Any

from tb_gradflow.trace.protection.local_variables import local_variables


class UnknownValueError(Exception):
    """The value of an additional variable is not known for certain."""


def values_of(
    function: FunctionType, names: Iterable[str], others: Iterable[FunctionType], variables: Mapping[str, Any]
) -> dict[str, Any]:
    """The values that names have in the function around `function`.

    Raises:
        UnknownValueError: for a name that has none, or several, or another one among the function's globals.
    """
    found = {}
    for name in names:
        seen = {id(value): value for value in _seen(function, name, others, variables)}
        if len(seen) != 1:
            raise UnknownValueError(name)
        (found[name],) = seen.values()
        if function.__globals__.get(name, found[name]) is not found[name]:
            raise UnknownValueError(name)
    return found


def _seen(
    function: FunctionType, name: str, others: Iterable[FunctionType], variables: Mapping[str, Any]
) -> Iterator[Any]:
    around, _, _ = function.__qualname__.rpartition(".<locals>.")
    file = function.__code__.co_filename
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        here = frame.f_code
        if here.co_filename == file and here.co_name == around.rpartition(".")[2]:
            values = local_variables(frame)
            if name in values:
                yield values[name]
                return
        frame = frame.f_back
    kept = list(_kept(around, file, name, others))
    if kept:
        yield from kept
    elif name in variables:
        yield variables[name]


def _kept(around: str, file: str, name: str, others: Iterable[FunctionType]) -> Iterator[Any]:
    """What the functions that were made by the same function have in the cell of a name."""
    for each in others:
        code = each.__code__
        if code.co_filename != file or not each.__qualname__.startswith(f"{around}.<locals>."):
            continue
        if name in code.co_freevars and each.__closure__ is not None:
            yield each.__closure__[code.co_freevars.index(name)].cell_contents


def with_globals(text: str, file: str, wanted: Mapping[CodeType, frozenset[str]], flags: int) -> CodeType:
    """Compiles a file so that some of its functions have only the named cells, and read their other enclosing variables
    from the globals. Those functions are identified by the code that the unchanged text has for them."""
    tree = ast.parse(text, file)
    for code, cells in wanted.items():
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.Lambda)) and _is_of(node, code):
                besides = frozenset(code.co_freevars) - cells
                _read_globally(node, besides, cells - frozenset(code.co_freevars))
    compiled: CodeType = compile(ast.fix_missing_locations(tree), file, "exec", flags=flags, dont_inherit=True)
    return compiled


def _is_of(node: ast.FunctionDef | ast.Lambda, code: CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and node.lineno == code.co_firstlineno
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return node.name == code.co_name and first == code.co_firstlineno


def _read_globally(node: ast.FunctionDef | ast.Lambda, besides: frozenset[str], kept: frozenset[str]) -> None:
    never = ast.Tuple([ast.Name(name, ast.Load()) for name in sorted(kept)], ast.Load())
    if isinstance(node, ast.FunctionDef):
        if kept:
            node.body.append(ast.If(ast.Constant(False), [ast.Expr(never)], []))
        if besides:
            node.body.insert(0, ast.Global(sorted(besides)))
        return
    if besides:
        node.body = _Renamed(besides).visit(node.body)
    if kept:
        node.body = ast.IfExp(ast.Constant(True), node.body, never)


def apart(name: str) -> str:
    """A global name for an additional variable of a lambda, which has no statements to declare a name global."""
    return f"__gradflow_{name}"


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Name(apart(node.id), node.ctx), node) if node.id in self._names else node
