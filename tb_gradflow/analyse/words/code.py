"""The call in the user's line that created an op, parsed, so that a fix can use the user's names."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tb_gradflow.record.python import OPERATORS, calls_within, expression_of, is_number, name_of, parsed

# Not those of bits, which join conditions, and not the product of matrices.
_OPERATORS = {kind: sign for kind, sign in OPERATORS.items() if sign not in ("&", "|", "~", "@")}

_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")

_CASTS = ("cast", "to_int32", "to_int64", "round", "rint", "floor", "ceil")

_PYTHON = ("np", "numpy", "math")

_LABEL = re.compile(r"\b(y|y_true|true|label|labels|target|targets|truth)\b")

# A named argument; `==` is a comparison.
_NAMED = re.compile(r"[A-Za-z_]\w*=(?!=)")

Compared = tuple[str, str, str]
"""The left side of a comparison, its operator, and the right side."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call or an operator on the user's line.

    Attributes:
        text: The whole expression, as written.
        arguments: Its positional arguments, then the named ones with their names; for an operator, its two sides.
        head: The part before the bracket, such as `tf.round`; or the operator.
        about: The argument to begin with where one is sought that a fix is about.
    """

    text: str
    arguments: tuple[str, ...]
    head: str
    about: int = 0

    @property
    def subject(self) -> str:
        """The argument that a fix is about: the first that is not a literal number."""
        plain = [_without_name(each) for each in self.arguments]
        plain = [*plain[self.about :], *plain[: self.about]]
        return next((each for each in plain if not is_number(each)), plain[0])

    @property
    def is_operator(self) -> bool:
        return self.head in _OPERATORS.values()

    def argument(self, place: int, name: str) -> str | None:
        """An argument by position or name; None if it is not given."""
        named = [each.partition("=")[2] for each in self.arguments if each.startswith(f"{name}=")]
        plain = [each for each in self.arguments if not _NAMED.match(each)]
        return next(iter(named), None) or (plain[place] if place < len(plain) else None)

    def with_argument(self, place: int, name: str, value: str) -> str:
        """The same call with another value for an argument that is given by position or name."""
        others = list(self.arguments)
        named = [index for index, each in enumerate(others) if each.startswith(f"{name}=")]
        plain = [index for index, each in enumerate(others) if not _NAMED.match(each)]
        for index in named or plain[place : place + 1]:
            others[index] = f"{name}={value}" if named else value
        return f"{self.head}({', '.join(others)})"

    def with_subject(self, value: str) -> str:
        """The same call with another subject."""
        others = list(self.arguments)
        place = [_without_name(each) for each in others].index(self.subject)
        others[place] = others[place].removesuffix(self.subject) + value
        return (
            f"{bracketed(others[0])} {self.head} {bracketed(others[1])}"
            if self.is_operator
            else (f"{self.head}({', '.join(others)})")
        )


def _divides_by_a_number(call: Call) -> bool:
    return call.head == "/" and is_number(call.arguments[1])


def call_on(line: str, api: str | None, about: str = "") -> Call | None:
    """The call of `api` on `line`; None if the line does not parse, or calls it by another name. Of several calls, the
    one that mentions the name `about`; otherwise the first, preferably not one of a label, a number or NumPy: in
    `tf.math.log(x) / tf.math.log(10.0)` it is the logarithm of `x`. Also None for several comparisons, because each may
    be of data only.
    """
    tree = _parsed(line)
    if tree is None or not api:
        return None
    name = api.rpartition(".")[2]
    found = [call for node in ast.walk(tree) for call in _calls(node, name, api)]
    found = [call for call in found if not _is_constant(call)] or found
    # In `cast(cast(x, int), float)` the innermost counts: it is the first that the value reaches.
    inner = [call for call in found if call.is_operator or not any(_is_inside(other, call) for other in found)]
    inner = [call for call in inner if not _divides_by_a_number(call)] or inner
    named = [call for call in inner if about and re.search(rf"\b{re.escape(about)}\b", call.text)]
    learned = [call for call in inner if not _LABEL.search(call.subject)]
    if not named and api in _COMPARISONS and len({call.text for call in learned or inner}) > 1:
        return None
    return next(iter([*named, *learned, *inner]), None)


def _is_inside(inner: Call, outer: Call) -> bool:
    return any(inner.text in argument for argument in outer.arguments)


def calls_in_order(line: str, api: str) -> list[Call]:
    """The calls of `api` on `line` that may create an op, in the order in which Python evaluates them."""
    tree, name = _parsed(line), api.rpartition(".")[2]
    return [call for node in _evaluated(tree) for call in _calls(node, name, api) if not _is_constant(call)]


def _evaluated(node: ast.AST | None) -> Iterator[ast.AST]:
    """The parts of a node and then the node, in the order of evaluation. Bodies of functions on the line are left out:
    they may run later, or never."""
    if node is None or isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return
    for part in ast.iter_child_nodes(node):
        yield from _evaluated(part)
    yield node


def fractional_power_on(line: str, found: Call) -> Call:
    """`found`; or, if that is a square or a cube, another power of the same name on `line` that is not.

    In `tf.pow(tf.pow(a, 2) + tf.pow(b, 2), 0.5)` only the outer one has an infinite derivative at zero.
    """
    tree = _parsed(line)
    if tree is None or not is_whole_power(found):
        return found
    name = found.head.rpartition(".")[2]
    every = [call for node in ast.walk(tree) for call in _calls(node, name, found.head)]
    return next((call for call in every if not is_whole_power(call)), found)


def is_whole_power(power: Call) -> bool:
    """Whether the exponent of a power is an integer: then every value has a finite derivative."""
    try:
        return float(power.arguments[1].rpartition("=")[2]) in range(1, 100)
    except (IndexError, ValueError):
        return False


def _is_constant(call: Call) -> bool:
    """Whether it creates no TensorFlow op: Python or NumPy computes it, or its argument is a number."""
    return is_number(call.subject) or call.head.partition(".")[0] in _PYTHON


def call_around(line: str, inner: Call) -> Call | None:
    """The call on `line` whose first argument is `inner`; None if there is none."""
    return next((call for call in calls_in(line) if call.arguments[0] == inner.text), None)


def conditions_joined(line: str, one: str) -> tuple[str, Compared, Compared] | None:
    """An `a & b` or `logical_and(a, b)` of two inequalities on `line`, one of them `one`: all of it, and the left side,
    the operator and the right side of each. None if there is none."""
    tree = _parsed(line)
    for node in ast.walk(tree) if tree is not None else ():
        sides = [node.left, node.right] if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd) else []
        if isinstance(node, ast.Call) and name_of(node.func) == "logical_and":
            sides = node.args
        told = [found for each in sides if (found := _inequality(each)) is not None]
        if len(told) == len(sides) == 2 and one in (ast.unparse(each) for each in sides):
            return ast.unparse(node), told[0], told[1]
    return None


def _inequality(node: ast.AST) -> Compared | None:
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    operator = _OPERATORS.get(type(node.ops[0]), "")
    found = ast.unparse(node.left), operator, ast.unparse(node.comparators[0])
    return found if operator in ("<", "<=", ">", ">=") else None


def assigned_by(line: str) -> str:
    """The name to which a line assigns a value; empty for other lines."""
    tree = _parsed(line)
    body = tree.body if isinstance(tree, ast.Module) else []
    statement = body[0] if len(body) == 1 else None
    return ast.unparse(statement.targets[0]) if isinstance(statement, ast.Assign) else ""


def targets_of(line: str, functions: Collection[str]) -> list[str]:
    """The names among which a line divides the result of one of these functions, `a, b = f(x)`; empty for other
    lines."""
    tree = _parsed(line)
    body = tree.body if isinstance(tree, ast.Module) else []
    statement = body[0] if len(body) == 1 and isinstance(body[0], ast.Assign) else None
    call = statement.value if statement is not None and isinstance(statement.value, ast.Call) else None
    if statement is None or call is None or name_of(call.func) not in functions:
        return []
    target = statement.targets[0]
    return [ast.unparse(each) for each in target.elts] if isinstance(target, (ast.Tuple, ast.List)) else []


def slices_in_order(line: str) -> list[str]:
    """The slices and elements that a line takes of one value, in the order in which Python evaluates them; empty if
    there are others."""
    nodes = [each for each in _evaluated(_parsed(line)) if isinstance(each, ast.Subscript)]
    slices = [each for each in nodes if isinstance(each.ctx, ast.Load)]
    return [ast.unparse(each) for each in slices] if len({ast.unparse(each.value) for each in slices}) == 1 else []


def calls_in(expression: str) -> list[Call]:
    """The calls in an expression, the outer ones first."""
    tree = _parsed(expression)
    return [_call(node) for node in calls_within(tree) if node.args] if tree is not None else []


def innermost_call(expression: str) -> Call | None:
    """The first call in an expression that has no call among its arguments; None if there is none."""
    tree = _parsed(expression)
    calls = [node for node in calls_within(tree) if node.args] if tree is not None else []
    plain = (call for call in calls if not any(map(calls_within, call.args)))
    return next(map(_call, plain), None)


def sides_of(expression: str, operator: str) -> tuple[str, str] | None:
    """The two sides of the operator, if the whole expression is one operator; otherwise None."""
    node = _expression(expression)
    if isinstance(node, ast.BinOp) and _OPERATORS.get(type(node.op)) == operator:
        return ast.unparse(node.left), ast.unparse(node.right)
    return None


def without_cast(expression: str) -> str:
    """The argument of a cast or rounding, such as `tf.cast(x, tf.int32)` or `tf.round(x)`; other expressions
    unchanged."""
    node = _expression(expression)
    if isinstance(node, ast.Call) and node.args and name_of(node.func) in _CASTS:
        return without_cast(ast.unparse(node.args[0]))
    return expression


def is_simple(expression: str) -> bool:
    """Whether an expression can be written twice: a name, or an attribute of one."""
    return expression.replace(".", "").replace("_", "").isalnum()


def bracketed(expression: str) -> str:
    """The expression, in brackets if an adjacent operator would bind more strongly."""
    node = _expression(expression)
    whole = isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant))
    return expression if whole or node is None else f"({expression})"


def negated(condition: str) -> str:
    """The negation of a condition, as code."""
    node = _expression(condition)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPPOSITE:
        return f"{ast.unparse(node.left)} {_OPPOSITE[type(node.ops[0])]} {ast.unparse(node.comparators[0])}"
    return f"~{bracketed(condition)}"


_OPPOSITE: dict[type[ast.AST], str] = {
    ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<", ast.Eq: "!=", ast.NotEq: "==",
}  # fmt: skip


def _calls(node: ast.AST, name: str, api: str) -> Iterator[Call]:
    if isinstance(node, ast.Call) and _shows_arguments(node) and name_of(node.func) == name != "":
        yield _call(node)
    elif isinstance(node, ast.Compare) and _OPERATORS.get(type(node.ops[0])) == api:
        yield Call(ast.unparse(node), (ast.unparse(node.left), ast.unparse(node.comparators[0])), api)
    elif isinstance(node, ast.BinOp) and _OPERATORS.get(type(node.op)) == api:
        yield Call(ast.unparse(node), (ast.unparse(node.left), ast.unparse(node.right)), api)


def _shows_arguments(call: ast.Call) -> bool:
    """Whether a call has arguments, and they are written out: not so in `f(*arguments)`."""
    hidden = any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords)
    return bool(call.args or call.keywords) and not hidden


def _call(node: ast.Call) -> Call:
    arguments = tuple(ast.unparse(each) for each in (*node.args, *node.keywords))
    return Call(ast.unparse(node), arguments, ast.unparse(node.func))


def _without_name(argument: str) -> str:
    return argument[match.end() :] if (match := _NAMED.match(argument)) else argument


def _expression(text: str) -> ast.expr | None:
    try:
        return expression_of(text)
    except SyntaxError:
        return None


def _parsed(line: str) -> ast.AST | None:
    """The line as a syntax tree. A line that opens a block is completed; a truncated statement is not."""
    text = line.strip()
    return parsed(text, text + "\n    pass", text.rstrip(","))
