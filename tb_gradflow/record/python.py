"""Python code as a syntax tree: what its parts are called, and which names they read and bind."""

from __future__ import annotations

import ast
from collections.abc import Iterator

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


def parsed(*texts: str) -> ast.Module | None:
    """The tree of the first of these texts that is Python; `None` if none is."""
    for text in texts:
        try:
            return module_of(text)
        except SyntaxError:
            continue
    return None


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
"""Nodes with a body that runs when they are called."""


def own_nodes(scope: ast.AST, inner: tuple[type[ast.AST], ...] = FUNCTIONS) -> Iterator[ast.AST]:
    """What is in a node, in the order of the text; functions, or other `inner` nodes, without what is in them."""
    queue = [*ast.iter_child_nodes(scope)][::-1]
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, inner):
            queue.extend([*ast.iter_child_nodes(node)][::-1])


def lines_of(node: ast.AST, last: ast.AST | None = None) -> range:
    """The lines of a node, or from a node to another one."""
    first = getattr(node, "lineno", 1)
    return range(first, (getattr(last or node, "end_lineno", None) or first) + 1)


def name_of(function: ast.AST) -> str:
    """The last part of what is called: `softmax` of `tf.nn.softmax`."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def is_number(expression: ast.AST | str) -> bool:
    """Whether an expression is a number that is written out."""
    try:
        return isinstance(ast.literal_eval(expression), (int, float))
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return False


OPERATORS: dict[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.FloorDiv: "//", ast.Mod: "%", ast.Div: "/", ast.Mult: "*", ast.Add: "+", ast.Sub: "-", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.Invert: "~", ast.MatMult: "@",
}  # fmt: skip
"""Those of comparisons and of values, as they are written."""


def calls_within(node: ast.AST, *names: str) -> list[ast.Call]:
    """The calls in a node, the outer ones first; or only those of functions with one of these names."""
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
    return [call for call in calls if name_of(call.func) in names] if names else calls


def argument_of(call: ast.Call, position: int, *names: str) -> ast.expr | None:
    """An argument, by its position or by its name, of which there may be several; a negative position is by the name
    alone. `None` if it is not written there, as in `f(*arguments)`."""
    named = next((keyword.value for keyword in call.keywords if keyword.arg in names), None)
    if named is not None:
        return named
    if any(isinstance(given, ast.Starred) for given in call.args[: position + 1]):
        return None
    return call.args[position] if 0 <= position < len(call.args) else None


def names_in(*nodes: ast.AST) -> set[str]:
    """Every name that is written somewhere in nodes, other than as a parameter."""
    return {name.id for name in _names(nodes)}


def names_read(*nodes: ast.AST) -> set[str]:
    """The names whose values are used somewhere in nodes."""
    return {name.id for name in _names(nodes) if isinstance(name.ctx, ast.Load)}


def names_bound(*nodes: ast.AST) -> set[str]:
    """The names that get a value somewhere in nodes, other than as parameters."""
    return {name.id for name in _names(nodes) if isinstance(name.ctx, ast.Store)}


def uses_of(node: ast.AST, *names: str) -> list[ast.Name]:
    """Where one of these names is written in a node, to read its value or to give it one."""
    return [name for name in _names((node,)) if name.id in names]


def reads_of(node: ast.AST, *names: str) -> list[ast.Name]:
    """Where the value of one of these names is read in a node."""
    return [name for name in uses_of(node, *names) if isinstance(name.ctx, ast.Load)]


def values_of(node: ast.AST, name: str) -> list[ast.expr]:
    """The values that assignments in a node give a name."""
    statements = (part for part in ast.walk(node) if isinstance(part, ast.Assign))
    return [statement.value for statement in statements if name in variables_of(statement)]


def variables_of(statement: ast.Assign) -> list[str]:
    """The names that get the whole value of an assignment: `x` and `y` of `x = y = f()`."""
    return [target.id for target in statement.targets if isinstance(target, ast.Name)]


def parameters_in(node: ast.AST) -> set[str]:
    """The parameters of a function, and of those inside of it."""
    return {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}


def _names(nodes: tuple[ast.AST, ...]) -> Iterator[ast.Name]:
    return (part for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name))


def targets_of(statement: ast.AST) -> list[ast.expr]:
    """What an assignment gives a value, or another value; nothing for other statements."""
    if isinstance(statement, ast.Assign):
        return statement.targets
    return [statement.target] if isinstance(statement, (ast.AnnAssign, ast.AugAssign)) else []


def imports_of(tree: ast.AST) -> dict[str, str]:
    """The imported names, and the modules or parts of modules that they stand for."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                found[alias.asname or name] = name
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return found


_LIVE = ("py_function", "numpy_function", "py_func")


def live_in(node: ast.AST) -> set[ast.AST]:
    """The parts of a function that are Python code which a compiled step runs each time: what such calls are given."""
    calls = (call for call in calls_within(node) if ast.unparse(call.func).endswith(_LIVE))
    given: set[ast.AST] = {part for call in calls for part in call.args[:1]}
    names = {part.id for part in given if isinstance(part, ast.Name)}
    return given | {part for part in ast.walk(node) if isinstance(part, ast.FunctionDef) and part.name in names}


def _check_nesting(tree: ast.AST) -> None:
    level: list[ast.AST] = [tree]
    for _ in range(MOST_NESTED):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise SyntaxError(f"more than {MOST_NESTED} levels")
