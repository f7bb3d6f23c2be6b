"""How the user's code uses a value: the statement around a line, and whether the value is used further."""

from __future__ import annotations

import ast
import functools
import linecache
import re
from collections.abc import Iterable, Set

from tb_gradflow.record.python import lines_of, name_of, own_nodes, parsed, targets_of

# Statements that consume a value: a call for its side effect (print, log, append), an assertion.
_ENDS = (ast.Expr, ast.Assert, ast.Raise, ast.Pass)


def statement_at(file: str, line: int) -> ast.stmt | None:
    """The innermost statement that `line` belongs to; None if the file cannot be read.

    For the head of a block (`if x > 0:`) it is the block.
    """
    return max(_around(file, line), key=lambda statement: statement.lineno, default=None)


def function_at(file: str, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The innermost function that `line` belongs to."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = (statement for statement in _around(file, line) if isinstance(statement, kinds))
    return max(functions, key=lambda function: function.lineno, default=None)


def _around(file: str, line: int) -> list[ast.stmt]:
    """The statements that `line` belongs to."""
    return [statement for statement in _statements(file) if line in lines_of(statement)]


def arguments_at(file: str, line: int) -> frozenset[str]:
    """The names of the arguments of the function that `line` belongs to."""
    inner = function_at(file, line)
    if inner is None:
        return frozenset()
    return frozenset(parameter.arg for parameter in (*inner.args.posonlyargs, *inner.args.args, *inner.args.kwonlyargs))


def written_at(file: str, line: int) -> str:
    """The user's code on a line; if the line is part of a statement over several lines, the whole statement."""
    text = linecache.getline(file, line).strip()
    return text if _is_whole(text) else _statement_around(file, line, text)


@functools.lru_cache(maxsize=1024)
def _is_whole(text: str) -> bool:
    """Whether a line makes sense on its own: as a statement, the head of a block, or one of several arguments that
    calls or computes something. A line with `axis,` or `tf.float32,` does not show the statement that it belongs to.
    """
    if parsed(text, text + "\n    pass") is not None:
        return True
    arguments = parsed(text.rstrip(","))
    return arguments is not None and any(isinstance(part, _SPEAKING) for part in ast.walk(arguments))


# The kinds of nodes in an argument that show a computation.
_SPEAKING = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Lambda)


@functools.lru_cache(maxsize=1024)
def _statement_around(file: str, line: int, text: str) -> str:
    statement = statement_at(file, line)
    if not isinstance(statement, _SIMPLE):
        return text
    whole = ast.unparse(statement)
    return whole if len(whole) <= _LONGEST_STATEMENT else text


_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)
# Longer statements are tables and the like: their line is clearer.
_LONGEST_STATEMENT = 500


def is_only_told(file: str, line: int) -> bool:
    """Whether the value of the statement at `line` is only printed, logged or collected.

    No other statement of the file may read the name that holds it. False if the file cannot be read.
    """
    statement = statement_at(file, line)
    if statement is None:
        return False
    if isinstance(statement, _ENDS):
        return not _is_in_lambda(statement, line)
    if isinstance(statement, ast.If):
        return all(isinstance(branch, _ENDS) for branch in (*statement.body, *statement.orelse))
    names = names_kept(statement)
    return bool(names) and not any(names & _read_in(other) for other in _statements(file) if other is not statement)


def steers(file: str, line: int) -> bool:
    """Whether the value of the statement at `line` decides which other statements run, or how often."""
    statement = statement_at(file, line)
    if statement is None:
        return False
    heads = (ast.If, ast.While, ast.For)
    if isinstance(statement, heads):
        return True
    names = names_kept(statement)
    return any(isinstance(other, heads) and names & _read_in(other) for other in _statements(file))


def condition_of_request(file: str, line: int) -> tuple[int, str] | None:
    """In the function that `line` belongs to, the condition under which alone it requests a gradient: its line and its
    code; None if there is none."""
    for condition in _conditions_around(file, line):
        if any(_requests(node) for statement in condition.body for node in ast.walk(statement)):
            return condition.lineno, _head_of(condition)
    return None


def condition_of_update(file: str, line: int, ran: Set[int]) -> tuple[int, str] | None:
    """In the function that `line` belongs to, the condition under which alone it updates something, where none of the
    lines that `ran` is under it: its line and its code; None if there is none, or more than one."""
    found = []
    for condition in _conditions_around(file, line):
        if ran.isdisjoint(lines_of(condition.body[0], condition.body[-1])) and any(
            _updates(node) for statement in condition.body for node in ast.walk(statement)
        ):
            found.append((condition.lineno, _head_of(condition)))
    return found[0] if len(found) == 1 else None


def _conditions_around(file: str, line: int) -> list[ast.If]:
    inner = function_at(file, line)
    return [node for node in ast.walk(inner) if isinstance(node, ast.If)] if inner is not None else []


def _head_of(condition: ast.If) -> str:
    return f"if {ast.unparse(condition.test)}:"


def _updates(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _UPDATING.search(ast.unparse(node.func)) is not None


_UPDATING = re.compile(r"apply|minimize|assign")


def _requests(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _REQUESTS


_REQUESTS = ("gradient", "minimize", "compute_gradients")


def numbers_in(statement: ast.stmt) -> frozenset[float]:
    """The number literals in a statement."""
    literals = (node.value for node in ast.walk(statement) if isinstance(node, ast.Constant))
    return frozenset(float(value) for value in literals if isinstance(value, (int, float)))


def names_in(statement: ast.stmt) -> frozenset[str]:
    """The names and attributes that a statement reads."""
    return _identifiers(ast.walk(statement))


def names_kept(statement: ast.stmt) -> frozenset[str]:
    """The names and attributes that a statement assigns to."""
    nodes = (node for target in targets_of(statement) for node in ast.walk(target))
    return frozenset(name_of(node) for node in nodes if not _is_self(node)) - {""}


def _read_in(statement: ast.stmt) -> frozenset[str]:
    """The names that a statement itself reads, except to print or log them; not those of nested statements."""
    if isinstance(statement, _ENDS):
        return frozenset()
    return _identifiers(own_nodes(statement, (ast.stmt,)))


def _identifiers(nodes: Iterable[ast.AST]) -> frozenset[str]:
    return frozenset(name_of(node) for node in nodes if isinstance(getattr(node, "ctx", None), ast.Load)) - {""}


def _is_in_lambda(statement: ast.stmt, line: int) -> bool:
    """Whether a line of the statement contains a nested function, whose value goes to its caller."""
    return any(isinstance(node, ast.Lambda) and line in lines_of(node) for node in ast.walk(statement))


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _statements(file: str) -> tuple[ast.stmt, ...]:
    return _statements_in("".join(linecache.getlines(file)))


@functools.lru_cache(maxsize=64)
def _statements_in(text: str) -> tuple[ast.stmt, ...]:
    return tuple(node for node in ast.walk(tree_of(text)) if isinstance(node, ast.stmt))


@functools.lru_cache(maxsize=64)
def tree_of(text: str) -> ast.Module:
    """The tree of a file; an empty one for what is not Python."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])
