"""One step of an eager loop as a function, which can run again: the statements from the line at which its tape opened
to the line at which it ended, without those that neither its gradient nor its update needs."""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import linecache
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType
from typing import Any

from tb_gradflow.record.python import calls_within, lines_of, names_in, names_read
from tb_gradflow.record.report import Edit
from tb_gradflow.trace.engine.repeated import NotRepeatable
from tb_gradflow.trace.protection.local_variables import local_variables
from tb_gradflow.trace.source.user_line import is_users

_VALUES = "__tb_gradflow_values__"
"""The name of the variables' values in the function."""

_CHANGING = frozenset({"apply", "apply_gradients", "minimize", "assign", "assign_add", "assign_sub", "gradient"})
"""Methods that an update is made with."""

_CONTAINERS = (list, dict, set)

_MOST_ELEMENTS = 10_000
"""Of a container that is copied: a larger one holds data."""

_FUTURE = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
"""The flags of a file's `from __future__ import …`."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A function of the user's that was running when a tape opened.

    Attributes:
        frame: It.
        line: Where it was.
        values: Those of its variables.
    """

    frame: FrameType
    line: int
    values: Mapping[str, Any]


def opened_in(frame: FrameType) -> list[Opened]:
    """The functions that are running, the innermost first."""
    return [
        Opened(each, each.f_lineno, {name: _copy(value) for name, value in local_variables(each).items()})
        for each in _stack(frame)
        if is_users(each.f_code.co_filename)
    ]


def _copy(value: Any) -> Any:
    """A value, or a copy of what the step may put something into."""
    return value.copy() if type(value) in _CONTAINERS and len(value) <= _MOST_ELEMENTS else value


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


class _Fresh(dict[str, Any]):
    """Values, and copies of those that a step may put its tensors into: each run begins with what there was."""

    def __getitem__(self, name: str) -> Any:
        return _copy(super().__getitem__(name))


@dataclass(frozen=True, slots=True)
class Body:
    """The statements of a step.

    Attributes:
        origin: The code that they are a part of.
        first: Their first line.
        last: The line at which the step ended; `None` if that is not known.
        values: What the variables that they use were when it began.
    """

    origin: CodeType
    first: int
    last: int | None
    values: Mapping[str, Any]

    def code(self, text: str, line_now: Callable[[int], int] = lambda line: line) -> CodeType:
        """That of the function, in this text of their file, in which a line may have another number.

        Raises:
            NotRepeatable: they cannot be run alone.
        """
        tree = ast.parse(text)
        kept = self._statements(tree, line_now)
        stored = {name for each in kept for name in _stored(each)} & self.values.keys()
        stored |= {name for name, value in self.values.items() if type(value) in _CONTAINERS}
        head = "".join(f"\n    {name} = {_VALUES}[{name!r}]" for name in sorted(stored))
        module = ast.parse(f"def step():{head or ' pass'}")
        for node in ast.walk(module):
            if hasattr(node, "lineno"):
                vars(node).update(lineno=kept[0].lineno, end_lineno=kept[0].lineno)
        function = module.body[0]
        assert isinstance(function, ast.FunctionDef)
        function.body += kept
        owner = _class_around(tree, kept[0].lineno)
        if owner is not None:  # it may use private names of its class
            [around] = ast.parse(f"class {owner.name}: pass").body
            assert isinstance(around, ast.ClassDef)
            around.body = [function]
            module.body = [around]
        try:
            whole = compile(
                module,
                self.origin.co_filename,
                "exec",
                flags=self.origin.co_flags & _FUTURE,
                dont_inherit=True,
            )
        except SyntaxError as error:  # such as `continue`, or `await`
            raise NotRepeatable(f"it is no function of its own ({error.msg})") from None
        code: CodeType = whole
        for _ in range(1 if owner is None else 2):
            code = next(each for each in code.co_consts if isinstance(each, CodeType))
        if code.co_flags & inspect.CO_GENERATOR:
            raise NotRepeatable("it is no function of its own (`yield`)")
        if code.co_freevars:
            raise NotRepeatable(f"it is no function of its own (`{code.co_freevars[0]}`)")
        return code

    def has(self, edit: Edit) -> bool:
        """Whether an edit changes nothing but these statements."""
        tree = ast.parse("".join(linecache.getlines(self.origin.co_filename)))
        return any({edit.line, edit.end_line} <= set(lines_of(each)) for each in self._statements(tree))

    def _statements(self, tree: ast.Module, line_now: Callable[[int], int] = lambda line: line) -> list[ast.stmt]:
        first = line_now(self.first)
        listed, begin, end = _around(tree, first, first if self.last is None else line_now(self.last))
        if isinstance(listed[begin], (ast.For, ast.AsyncFor, ast.While)):
            raise NotRepeatable("it contains a loop in which gradients are taken")
        # A variable that has got no gradient may be updated later; but another `with` may open another tape.
        for place in range(end + 1, len(listed)):
            if isinstance(listed[place], ast.With):
                break
            if _changes(listed[place]):
                end = place
        return _needed(listed, begin, end)

    def function(self, around: Mapping[str, Any]) -> FunctionType:
        """The function; `around` are the global variables of its module.

        Raises:
            NotRepeatable: they cannot be run alone.
        """
        text = "".join(linecache.getlines(self.origin.co_filename))
        used = names_in(*self._statements(ast.parse(text)))
        # No more than that: a program may need the memory.
        values = {name: value for name, value in self.values.items() if name in used}
        own = Body(self.origin, self.first, self.last, values)
        function = FunctionType(own.code(text), {**around, **values, _VALUES: _Fresh(values)}, "step")
        vars(function)[BODY] = own
        return function


BODY = "_tb_gradflow_body"
"""The attribute of such a function with its `Body`."""


def body_of(opened: Sequence[Opened], now: FrameType) -> FunctionType:
    """The step that began in these functions and has ended.

    Args:
        opened: Those that were running when its tape opened.
        now: What is running.

    Raises:
        NotRepeatable: it is no function of its own.
    """
    running = list(_stack(now))
    found = next((each for each in opened if any(each.frame is frame for frame in running)), None)
    if found is None:
        raise NotRepeatable("the function in which it began has ended")
    last = found.frame.f_lineno if found.frame.f_lineno != found.line else None
    body = Body(found.frame.f_code, found.line, last, found.values)
    return body.function(found.frame.f_globals)


def _class_around(tree: ast.Module, line: int) -> ast.ClassDef | None:
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and line in lines_of(node)]
    return classes[-1] if classes else None  # the innermost one


def _around(tree: ast.Module, first: int, last: int) -> tuple[list[ast.stmt], int, int]:
    """The smallest list of statements that has both lines, and the places of those that have them."""
    found: tuple[list[ast.stmt], int, int] | None = None
    for node in ast.walk(tree):  # from the outside to the inside
        for name in ("body", "orelse", "finalbody"):
            listed = getattr(node, name, None)
            if not isinstance(listed, list):
                continue
            begin, end = (
                next((place for place, each in enumerate(listed) if line in lines_of(each)), None)
                for line in (first, last)
            )
            if begin is not None and end is not None and begin <= end:
                found = listed, begin, end
    if found is None:
        raise NotRepeatable("its lines are not known")
    return found


def _needed(listed: Sequence[ast.stmt], begin: int, end: int) -> list[ast.stmt]:
    """The first and the last statement, those that change something, and what these need."""
    kept = [listed[end]]
    names = names_read(listed[end])
    for place in range(end - 1, begin - 1, -1):
        each = listed[place]
        if place == begin or _changes(each) or not names.isdisjoint((*_stored(each), *_called_on(each))):
            kept.insert(0, each)
            names |= names_read(each)
    return kept


def _changes(statement: ast.stmt) -> bool:
    return any(isinstance(call.func, ast.Attribute) for call in calls_within(statement, *_CHANGING))


def _stored(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement gives a value, or a part of one."""
    for node in ast.walk(statement):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            inner: ast.expr = node
            while isinstance(inner, (ast.Attribute, ast.Subscript)):
                inner = inner.value
            if isinstance(inner, ast.Name):
                yield inner.id


def _called_on(statement: ast.stmt) -> Iterator[str]:
    """The name of the object that a statement only calls a method of."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        called = statement.value.func
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            yield called.value.id
