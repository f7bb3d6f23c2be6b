"""Edits and their costs: of several, the first that works is offered."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tb_gradflow.analyse.user_code.code import Code
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.record.report import Edit


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fix that can be written instead of the user's lines.

    Attributes:
        edit: The lines.
        cost: What the user gives up with it, as a sentence.
    """

    edit: Edit
    cost: str


Maker = Callable[[Group], Iterator[Candidate]]
"""The fixes for one cause, the best first."""

# Inside these an operator needs no brackets.
_CLOSED = (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr, ast.keyword, ast.Lambda, ast.Tuple, ast.List, ast.Dict)


def candidates(cost: str, *drafted: Edit | None) -> Iterator[Candidate]:
    """Those of the edits that could be made, with one cost."""
    for edit in drafted:
        if edit is not None:
            yield Candidate(edit, cost)


def in_place_of(code: Code, node: ast.expr, text: str) -> str:
    """An operator's text in the position of `node`: in brackets if its surroundings need them."""
    outer = code.parent(node)
    if isinstance(outer, _CLOSED):
        return text
    if isinstance(outer, ast.Call) and outer.func is not node:
        return text
    return f"({text})"
