"""Python code in a record, as a syntax tree."""

from __future__ import annotations

import ast

MOST_NESTED = 150
"""Levels of a syntax tree. Python's functions for trees call themselves a few times for each level, and Python allows
a thousand calls."""


def module_of(code: str) -> ast.Module:
    """The tree of some statements. Raises SyntaxError for anything else, and for code that is nested too deeply."""
    try:
        tree = ast.parse(code)
    except (ValueError, RecursionError, MemoryError) as error:  # a null character, or what is nested far too deeply
        raise SyntaxError(str(error)) from None
    _check_nesting(tree)
    return tree


def expression_of(code: str) -> ast.expr:
    """The same for an expression."""
    try:
        tree = ast.parse(code, mode="eval")
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxError(str(error)) from None
    _check_nesting(tree)
    return tree.body


_LIVE = ("py_function", "numpy_function", "py_func")


def live_in(node: ast.AST) -> set[ast.AST]:
    """The parts of a function that are Python code which a compiled step runs each time: what such calls are given."""
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    given: set[ast.AST] = {part for each in calls if ast.unparse(each.func).endswith(_LIVE) for part in each.args[:1]}
    names = {each.id for each in given if isinstance(each, ast.Name)}
    return given | {each for each in ast.walk(node) if isinstance(each, ast.FunctionDef) and each.name in names}


def _check_nesting(tree: ast.AST) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(MOST_NESTED):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise SyntaxError(f"more than {MOST_NESTED} levels")
