"""A passage of the user's source as a syntax tree with the position of each part in the text."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from tb_gradflow.record.python import (
    FUNCTIONS,
    calls_within,
    imports_of,
    lines_of,
    module_of,
    name_of,
    names_in,
    parameters_in,
)
from tb_gradflow.record.schema import Passage, Trace

_SCOPES = (*FUNCTIONS, ast.ClassDef)
# Nodes that evaluate one of their parts more than once, later, or perhaps never.
_DEFERRED = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.BoolOp, ast.While)


class Code:
    """A passage, parsed.

    Attributes:
        passage: As it was recorded.
        text: Its text.
        tree: Its syntax tree; line numbers count from the passage's first line.
    """

    def __init__(self, passage: Passage) -> None:
        """Raises SyntaxError if the text is not valid Python."""
        self.passage = passage
        self.text = passage.text
        self.tree = module_of(passage.text)
        self._starts = [0]
        self._lines = passage.text.split("\n")
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @property
    def lines(self) -> list[str]:
        """Its lines, without line breaks."""
        return self._lines

    @functools.cached_property
    def imports(self) -> dict[str, str]:
        """The imported names, and the modules or parts of modules that they stand for."""
        return imports_of(self.tree)

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Where a node begins and ends in the text, in characters."""
        first, last = getattr(node, "lineno", 1), getattr(node, "end_lineno", 1)
        return (
            self._place(first, getattr(node, "col_offset", 0)),
            self._place(last, getattr(node, "end_col_offset", 0)),
        )

    def _place(self, line: int, column: int) -> int:
        # The columns of a syntax tree count bytes.
        before = self._lines[line - 1].encode()[:column]
        return self._starts[line - 1] + len(before.decode(errors="replace"))

    def written(self, node: ast.AST) -> str:
        """A node as the user wrote it; on one line if it then needs no brackets."""
        start, end = self.span(node)
        text = self.text[start:end]
        return ast.unparse(node) if "\n" in text and not isinstance(node, (ast.Call, ast.Subscript)) else text

    def operand(self, node: ast.AST) -> str:
        """The same, in brackets if an adjacent operator would bind more strongly."""
        whole = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.Tuple, ast.List)
        return self.written(node) if isinstance(node, whole) else f"({self.written(node)})"

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes that contain a node, the innermost first."""
        outer = self._parents.get(node)
        while outer is not None:
            yield outer
            outer = self._parents.get(outer)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The statement that contains a node, or is the node."""
        return next((outer for outer in (node, *self.around(node)) if isinstance(outer, ast.stmt)), None)

    def scope(self, node: ast.AST) -> ast.AST:
        """The function whose body contains a node; otherwise the class, otherwise the whole passage."""
        return next((outer for outer in self.around(node) if isinstance(outer, _SCOPES)), self.tree)

    def function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost function with statements that contains a node."""
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        return next((outer for outer in self.around(node) if isinstance(outer, functions)), None)

    def callable(self, node: ast.AST) -> ast.AST | None:
        """The innermost function, with statements or a `lambda`, that contains a node."""
        return next((outer for outer in self.around(node) if isinstance(outer, FUNCTIONS)), None)

    def owner(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class that contains a node."""
        return next((outer for outer in self.around(node) if isinstance(outer, ast.ClassDef)), None)

    def is_in_loop(self, node: ast.AST) -> bool:
        return any(isinstance(outer, (ast.For, ast.While)) for outer in self.around(node))

    def value_of(self, node: ast.expr) -> ast.expr:
        """The expression; or, for a name, its value if it is assigned once in the same function."""
        if not isinstance(node, ast.Name):
            return node
        given = [
            each.value
            for each in ast.walk(self.scope(node))
            if isinstance(each, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == node.id for target in each.targets)
        ]
        return given[0] if len(given) == 1 else node

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The block of statements that contains a statement."""
        outer = self._parents.get(statement)
        for name in ("body", "orelse", "finalbody"):
            listed = getattr(outer, name, None)
            if isinstance(listed, list) and statement in listed:
                return listed
        return [statement]

    def is_evaluated_once(self, node: ast.AST) -> bool:
        """Whether a node's statement evaluates it exactly once, so that it can be computed in a statement before."""
        for outer in self.around(node):
            if isinstance(outer, _DEFERRED):
                return False
            if isinstance(outer, ast.stmt):
                return isinstance(outer, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr))
        return False

    def starts_a_line(self, statement: ast.stmt) -> bool:
        """Whether a statement is the first on its line."""
        start, _ = self.span(statement)
        return not self.text[:start].rpartition("\n")[2].strip()

    def indentation(self, statement: ast.stmt) -> str:
        start, _ = self.span(statement)
        return self.text[:start].rpartition("\n")[2]

    def names(self, node: ast.AST) -> set[str]:
        """Every name and parameter that is written inside a node."""
        return parameters_in(node) | names_in(node)

    def free_name(self, node: ast.AST, *wanted: str, besides: Collection[str] = ()) -> str:
        """A name that neither the function around a node nor `besides` uses: the first free one of those wanted."""
        scopes = [outer for outer in self.around(node) if isinstance(outer, FUNCTIONS)]
        taken = self.names(scopes[-1] if scopes else self.tree).union(besides)
        free = (name for name in wanted if name not in taken)
        numbered = (f"{wanted[0]}_{number}" for number in range(2, 100))
        return next(free, None) or next(name for name in numbered if name not in taken)

    def statements_at(self, line: int) -> list[ast.stmt]:
        """The statements that a line of the file belongs to, the innermost first; a statement with a body counts only
        with its head."""
        place = line - self.passage.line + 1
        found = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.stmt) and node.lineno <= place <= _end_of_head(node)
        ]
        return sorted(found, key=lambda node: (-node.lineno, -sum(1 for _ in self.around(node))))

    def statement_at(self, line: int) -> ast.stmt | None:
        """The innermost of these statements."""
        return next(iter(self.statements_at(line)), None)

    def parts_at(self, line: int) -> list[ast.expr]:
        """The expressions on a line of the file, in the order in which Python evaluates them: parts before the whole.

        This includes the parts of a `lambda` or comprehension of the same statement that are on the line.
        """
        place = line - self.passage.line + 1
        return [node for node in self.parts_around(line) if place in lines_of(node)]

    def parts_around(self, line: int) -> list[ast.expr]:
        """The expressions of the statement that a line of the file belongs to, in the same order; and those of other
        statements that begin on the same line as this one, as in `if x: y = z`."""
        found = self.statements_at(line)
        beside = [statement for statement in found if statement.lineno == found[0].lineno]
        beside.sort(key=lambda statement: statement.col_offset)
        return [node for statement in beside for node in _evaluated(statement) if isinstance(node, ast.expr)]


def _end_of_head(node: ast.stmt) -> int:
    body = getattr(node, "body", None)
    if isinstance(body, list) and body:
        first: int = body[0].lineno
        return max(node.lineno, first - 1)
    return node.end_lineno or node.lineno


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    for part in ast.iter_child_nodes(node):
        # The statements of a block are not parts of its head.
        if not isinstance(part, ast.stmt):
            yield from _evaluated(part)
    yield node


@dataclass(frozen=True)
class Program:
    """The user's files, as far as a trace contains them."""

    passages: tuple[Code, ...]

    def at(self, file: str, line: int) -> Code | None:
        """The passage that contains a line."""
        for code in self.passages:
            first = code.passage.line
            if code.passage.file == file and first <= line < first + len(code.lines):
                return code
        return None

    def statement_at(self, file: str, line: int) -> tuple[Code, ast.stmt] | None:
        """The innermost statement that a line belongs to, with its passage."""
        code = self.at(file, line)
        statement = code.statement_at(line) if code is not None else None
        return (code, statement) if code is not None and statement is not None else None

    def of_file(self, file: str) -> tuple[Code, ...]:
        return tuple(code for code in self.passages if code.passage.file == file)

    def modules(self, file: str) -> dict[str, str]:
        """The imported names of a file, and the modules or parts of modules that they stand for: `tf` for
        `tensorflow`."""
        found: dict[str, str] = {}
        for code in self.of_file(file):
            found.update(code.imports)
        if "*" in found:  # the usual names, if they are used, come from there
            used = names_in(*(code.tree for code in self.of_file(file)))
            found = {**{name: module for name, module in _USUAL.items() if name in used}, **found}
        return found


def program_of(trace: Trace) -> Program:
    """The files of a trace that define its step: those that contain its lines; and the one that names most of the
    layers and variables that these do not name, or, if no file names any, the one that calls most of the classes of
    layers that these do not call.

    A process may hold other programs, such as another version of the same model. If several files name or call the same
    number, none of them is taken. Files that cannot be parsed are left out.
    """
    listed = [*(layer.name for layer in trace.layers), *(variable.name for variable in trace.variables)]
    types = frozenset(layer.type for layer in trace.layers)
    by_default = _GIVEN_BY_KERAS.union(each.lower() for each in types)
    names = {part for name in listed for part in name.split("/") if without_number(part) not in by_default}
    lines = frozenset(source.file for source in trace.sources)
    return _of_step(trace.passages, frozenset(names), types, lines)


_USUAL = {"tf": "tensorflow", "keras": "keras"}

# Names that the layers and variables of any model have, where the program gives none, do not identify a file.
_GIVEN_BY_KERAS = frozenset(
    (
        "kernel", "recurrentkernel", "bias", "gamma", "beta", "embeddings", "movingmean", "movingvariance",
        "variable", "sequential", "functional",
    )
)  # fmt: skip


def without_number(name: str) -> str:
    """`layernormalization` for `layer_normalization_1`, as Keras calls the second `LayerNormalization`."""
    return re.sub(r"_\d+$", "", name).replace("_", "").lower()


@functools.lru_cache(maxsize=8)
def _of_step(
    passages: tuple[Passage, ...], names: frozenset[str], types: frozenset[str], lines: frozenset[str]
) -> Program:
    program = _program(passages)
    named: dict[str, set[str]] = {}
    called: dict[str, set[str]] = {}
    for code in program.passages:
        words = {node.value for node in ast.walk(code.tree) if isinstance(node, ast.Constant)}
        classes = {name_of(call.func) for call in calls_within(code.tree)}
        named.setdefault(code.passage.file, set()).update(names & words)
        called.setdefault(code.passage.file, set()).update(types & classes)
    kept = lines | _richest(named if any(named.values()) else called, lines)
    return Program(tuple(code for code in program.passages if code.passage.file in kept))


def _richest(found: Mapping[str, set[str]], lines: frozenset[str]) -> set[str]:
    """The files with the most matches beyond those of the files with a line of the step. Of several that have the same
    matches, none."""
    known = {match for file in lines for match in found.get(file, ())}
    left = {file: matches - known for file, matches in found.items()}
    most = max(map(len, left.values()), default=0)
    rich = [matches for matches in left.values() if most and len(matches) == most]
    return {file for file, matches in left.items() if rich.count(matches) == 1}


@functools.lru_cache(maxsize=8)
def _program(passages: tuple[Passage, ...]) -> Program:
    parsed = []
    for passage in passages:
        try:
            parsed.append(Code(passage))
        except SyntaxError:
            continue
    return Program(tuple(parsed))
