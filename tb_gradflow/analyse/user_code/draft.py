"""Changes of a passage, combined into one edit of whole lines."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Set as AbstractSet

from tb_gradflow.analyse.user_code.code import Code
from tb_gradflow.record.python import FUNCTIONS, module_of, own_nodes, parsed
from tb_gradflow.record.report import Edit


class Draft:
    """Collects changes of one passage. The passage itself is not modified."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self._changes: list[tuple[int, int, str]] = []
        self._names: set[str] = set()
        self._fits = True

    def free_name(self, node: ast.AST, *wanted: str) -> str:
        """A new name that neither the function around a node nor the draft uses so far."""
        name = self.code.free_name(node, *wanted, besides=self._names)
        self._names.add(name)
        return name

    def replace(self, node: ast.AST, text: str) -> Draft:
        """Replaces a node with `text`."""
        self._changes.append((*self.code.span(node), text))
        return self

    def replace_between(self, start: int, end: int, text: str) -> Draft:
        """The same for a part of the text, in characters."""
        self._changes.append((start, end, text))
        return self

    def insert_before(self, statement: ast.stmt, *lines: str) -> Draft:
        """Inserts statements before one, at its indentation. It must be the first on its line, or there is no edit."""
        self._fits &= self.code.starts_a_line(statement)
        start, _ = self.code.span(statement)
        decorators = getattr(statement, "decorator_list", [])
        if decorators:
            start = self.code.span(decorators[0])[0] - 1
        indentation = self.code.indentation(statement)
        self._changes.append((start, start, "".join(f"{line}\n{indentation}" for line in lines)))
        return self

    def insert_after(self, statement: ast.stmt, *lines: str) -> Draft:
        """Inserts statements after one, likewise."""
        self._fits &= self.code.starts_a_line(statement)
        _, end = self.code.span(statement)
        newline = self.code.text.find("\n", end)
        end = len(self.code.text) if newline < 0 else newline
        indentation = self.code.indentation(statement)
        self._changes.append((end, end, "".join(f"\n{indentation}{line}" for line in lines)))
        return self

    def computed_before(self, node: ast.expr, *wanted: str) -> str:
        """A name or an attribute for the value of `node`: the user's own expression if it can be written twice,
        otherwise a free name that an inserted statement assigns. Empty if neither is possible."""
        if is_plain(node):
            return self.code.written(node)
        statement = self.code.statement(node)
        if statement is None or not self.code.is_evaluated_once(node) or not self.code.starts_a_line(statement):
            return ""
        name = self.free_name(node, *wanted)
        self.insert_before(statement, f"{name} = {self.code.written(node)}")
        return name

    def edit(self) -> Edit | None:
        """The edit; `None` if it changes nothing, or the result is not valid Python."""
        text, changes = self.code.text, sorted(self._changes, key=lambda change: change[:2])
        if not changes or not self._fits or any(left[1] > right[0] for left, right in itertools.pairwise(changes)):
            return None
        changed, place = [], 0
        for start, end, written in changes:
            changed += [text[place:start], written]
            place = end
        after = "".join([*changed, text[place:]])
        if after == text or not is_python(after) or not foreign_names(after) <= foreign_names(text):
            return None
        first = text.count("\n", 0, changes[0][0])
        last = text.count("\n", 0, max(change[1] for change in changes))
        lines = self.code.lines
        behind = len(lines) - last - 1
        new = after.split("\n")
        passage = self.code.passage
        return Edit(
            file=passage.file,
            line=passage.line + first,
            end_line=passage.line + last,
            before="\n".join(lines[first : last + 1]),
            after="\n".join(new[first : len(new) - behind]),
        )


def dissolved(code: Code, block: ast.With | ast.If) -> Edit | None:
    """The statements of a block, in place of the block."""
    if not all(code.starts_a_line(each) for each in (block, *block.body)):
        return None
    extra = len(code.indentation(block.body[0])) - len(code.indentation(block))
    lines = code.lines[block.body[0].lineno - 1 : block.end_lineno]
    if extra <= 0 or any(line.strip() and line[:extra].strip() for line in lines):
        return None
    start, end = code.span(block)
    written = "\n".join(line[extra:] for line in lines)
    return Draft(code).replace_between(start, end, written.lstrip()).edit()


def foreign_names(text: str) -> set[tuple[str, str]]:
    """The names that a function reads although only other functions have them, each with the name of the function: the
    parameter of `build` is not known in `call`. Names that nothing in the text defines may be defined elsewhere."""
    tree = module_of(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    local = {function: _bound_in(function) for function in functions}
    everywhere, somewhere = _bound_in(tree), set[str]().union(*local.values())
    found = set[tuple[str, str]]()

    def visit(node: ast.AST, known: AbstractSet[str], name: str) -> None:
        for part in ast.iter_child_nodes(node):
            if part in local:
                visit(part, known | local[part], getattr(part, "name", name))
                continue
            if isinstance(part, ast.Name) and part.id in somewhere and part.id not in known:
                found.add((name, part.id))
            visit(part, known, name)

    visit(tree, everywhere, "")
    return found


def _bound_in(scope: ast.AST) -> set[str]:
    """The names that a function or a module defines itself; functions inside of it have their own."""
    names = set[str]()
    for node in own_nodes(scope):
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.Global | ast.Nonlocal):
            names.update(node.names)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names.add(node.name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


def is_plain(node: ast.AST) -> bool:
    """Whether an expression can be written twice: a name, an attribute of one, an element, a number."""
    if isinstance(node, ast.Subscript):
        return is_plain(node.value) and is_plain(node.slice)
    if isinstance(node, ast.Attribute):
        return is_plain(node.value)
    if isinstance(node, ast.UnaryOp):
        return is_plain(node.operand)
    if isinstance(node, ast.Slice):
        return all(part is None or is_plain(part) for part in (node.lower, node.upper, node.step))
    if isinstance(node, ast.Tuple):
        return all(is_plain(element) for element in node.elts)
    return isinstance(node, (ast.Name, ast.Constant))


def is_python(text: str) -> bool:
    return parsed(text) is not None
