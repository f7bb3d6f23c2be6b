"""What an edit writes, as the code that a sentence quotes: the report says what the patch does."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence

from tb_gradflow.record.python import name_of, parsed
from tb_gradflow.record.report import Edit

MOST_CHARACTERS = 160
"""Of code in a sentence."""

# A code, what is built on it until the clause ends, and the rest.
_CODE = re.compile(
    r"`[^`]+`(?:(?:, then |, and use |, |; where )(?!or )(?:[^`.;]*`[^`]+`)+[^`.;]*)?(?P<rest>.*)", re.DOTALL
)
_CALLED = re.compile(r"`[\w.]*?(?P<name>\w+)\(")
_INSTEAD = ("log_softmax", "log_sigmoid")
"""Functions to be called instead of two others. Where an edit bounds a value instead, the advice stays what it is."""

_BOUNDS = ("maximum", "minimum", "clip", "clip_by_value", "where")
_RESTS = (".", "; or", ", or", "; if", "; `")


def with_code_of(edit: Edit | None, fix: str, leads: Sequence[str]) -> str:
    """Advice that begins with one of these, such as "Keep its input away from zero: `…`.", with the code of the edit,
    if there is one, and if it is an expression that replaces another one."""
    lead = next((each for each in leads if fix.startswith(f"{each}`")), None)
    advice = _CODE.fullmatch(fix.removeprefix(lead)) if lead is not None else None
    if edit is None or advice is None or not advice["rest"].startswith(_RESTS):
        return fix
    code, promised = changed_code(edit), _CALLED.match(fix.removeprefix(lead or ""))
    is_other = promised is not None and promised["name"] in _INSTEAD and f"{promised['name']}(" not in code
    return fix if is_other or not code or "lambda" in code else f"{lead}`{code}`{advice['rest']}"


def changed_code(edit: Edit) -> str:
    """The expression that an edit writes in the place of another one; empty if it changes more than that, or if the
    expression is long."""
    before, after = (parsed(textwrap.dedent(lines)) for lines in (edit.before, edit.after))
    found = _where_they_differ(before, after) if before is not None and after is not None else None
    written = ast.get_source_segment(textwrap.dedent(edit.after), found) if found is not None else None
    code = " ".join(written.split()) if written is not None else ""
    return code if len(code) <= MOST_CHARACTERS else ""


def _where_they_differ(before: ast.AST, after: ast.AST) -> ast.expr | None:
    """The smallest expression of the new code that differs as a whole; of a bound, with the function whose argument it
    bounds: `sqrt(maximum(x, 1e-12))`."""
    around: ast.expr | None = None
    while True:
        pairs = list(_children(before, after))
        differing = [(old, new) for old, new in pairs if ast.dump(old) != ast.dump(new)]
        if type(before) is not type(after) or len(differing) != 1 or _own(before) != _own(after):
            break
        if isinstance(after, ast.expr):
            around = after
        before, after = differing[0]
    if not isinstance(after, ast.expr) or not isinstance(before, ast.expr):
        return None
    is_bound = isinstance(after, ast.Call) and name_of(after.func) in _BOUNDS
    is_part = is_bound or not isinstance(after, (ast.Call, ast.BinOp, ast.IfExp))
    return around if is_part and isinstance(around, (ast.Call, ast.BinOp)) else after


def _children(before: ast.AST, after: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Pairs of parts; none if they do not have equally many."""
    old, new = list(ast.iter_child_nodes(before)), list(ast.iter_child_nodes(after))
    yield from zip(old, new, strict=True) if len(old) == len(new) else ()


def _own(node: ast.AST) -> list[object]:
    """What a node says beside its parts, such as a name."""
    return [value for _, value in ast.iter_fields(node) if not isinstance(value, (ast.AST, list))]
