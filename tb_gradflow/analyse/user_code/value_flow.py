"""Which lines of a function depend on a value."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from tb_gradflow.record.python import calls_within, lines_of, live_in, targets_of


def lines_computed_from(function: ast.AST, name: str, ran: Collection[int]) -> set[int]:
    """The lines of statements that compute with a name or an attribute, such as `self.beta`, or with what was computed
    from it, or assigned under a condition that depends on it alone. Those that only update it are left out.

    Of the lines of the function, those in `ran` have run: a branch without one has not.
    """
    known = {name}
    while True:
        found = {assigned for node in _dependent(function, known, ran) for assigned in _assigned(node)}
        if found <= known:
            break
        known |= found
    lines = set[int]()
    for node in _dependent(function, known, ran):
        if name not in _targets(node):
            lines.update(lines_of(node))
    return lines


_UPDATES = (
    "assign",
    "set_weights",
    "apply_gradients",
    "minimize",
    "update_",
    "sync",
    "copy_",
    "soft_update",
    "hard_update",
)
_OF_METRICS = "update_state"


def updates_under(node: ast.AST, name: str) -> bool:
    """Whether a condition on a name or an attribute alone decides if something is updated, such as a target network.
    Under another condition, it may never be reached."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If):
            methods = (call.func for inner in child.body for call in calls_within(inner))
            names = [method.attr for method in methods if isinstance(method, ast.Attribute)]
            updates = any(called.startswith(_UPDATES) and called != _OF_METRICS for called in names)
            if updates and _reads(child.test) == {name}:
                return True
        elif updates_under(child, name):
            return True
    return False


def _dependent(node: ast.AST, names: set[str], ran: Collection[int]) -> Iterator[ast.stmt]:
    """The simple statements in a node that read one of these names, or depend on a condition that does."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.If, ast.While)):
            read = _reads(child.test)
            if read and read <= names:
                yield from (part for part in ast.walk(child) if isinstance(part, ast.stmt) and not _has_body(part))
                continue
            for block in (child.body, child.orelse):
                if any(line in ran for part in block for line in lines_of(part)):
                    for part in block:
                        yield from _dependent(ast.Module([part], []), names, ran)
        elif _has_body(child):
            yield from _dependent(child, names, ran)
        elif isinstance(child, ast.stmt) and not _reads(child).isdisjoint(names):
            yield child


def _has_body(node: ast.AST) -> bool:
    return isinstance(node, (ast.stmt, ast.ExceptHandler)) and hasattr(node, "body")


def _reads(node: ast.AST) -> set[str]:
    """The names and attributes that a node reads, without those that are only called, a part of an attribute, or read
    by Python code that runs in each step."""
    live = {part for block in live_in(node) for part in ast.walk(block)}
    nodes = [part for part in ast.walk(node) if part not in live]
    parts = {part.func for part in nodes if isinstance(part, ast.Call)}
    parts |= {part.value for part in nodes if isinstance(part, ast.Attribute)}
    read = (part for part in nodes if isinstance(getattr(part, "ctx", None), ast.Load) and part not in parts)
    return {ast.unparse(part) for part in read if isinstance(part, (ast.Name, ast.Attribute))}


def _assigned(node: ast.stmt) -> set[str]:
    """The local names that a statement assigns."""
    return {name for name in _targets(node) if name.isidentifier()}


def _targets(node: ast.stmt) -> set[str]:
    parts = (part for target in targets_of(node) for part in ast.walk(target))
    return {ast.unparse(part) for part in parts if isinstance(getattr(part, "ctx", None), ast.Store)}
