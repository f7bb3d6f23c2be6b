"""Where a finding's op is written: the call or the operator in the user's code that created it."""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass

from tb_gradflow.analyse.user_code.code import Code, Program, program_of
from tb_gradflow.analyse.user_code.draft import Draft
from tb_gradflow.analyse.user_code.library import Library, library_for
from tb_gradflow.analyse.words.names import Group, limited_input, short, spoken
from tb_gradflow.record.python import OPERATORS, argument_of, is_number, name_of
from tb_gradflow.record.schema import Op, Source

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_PYTHON = ("np", "numpy", "math", "random", "onp")


@dataclass(frozen=True)
class Place:
    """The starting point of a finding's edit.

    Attributes:
        group: The finding.
        program: The user's files.
        code: The passage that the line is in.
        source: The line.
        node: What the user wrote there; `None` if the line does not show it, or does not show which of several it is.
        op: Index of the op that it created; -1 if it stands for none.
    """

    group: Group
    program: Program
    code: Code
    source: Source
    node: ast.expr | None
    op: int = -1

    @property
    def call(self) -> ast.Call | None:
        """The call, if it is one."""
        return self.node if isinstance(self.node, ast.Call) else None

    @property
    def subject(self) -> ast.expr | None:
        """The subject of the call: its first argument; for an operator, its first side that is not a number. `None` if
        the line does not show it, as in `f(*arguments)`."""
        if isinstance(self.node, ast.Call):
            if any(isinstance(each, ast.Starred) for each in self.node.args):
                return None
            if any(each.arg is None for each in self.node.keywords):
                return None
            values = [*self.node.args, *(each.value for each in self.node.keywords if each.arg in _SUBJECTS)]
            if not self.node.args and not self.node.keywords and isinstance(self.node.func, ast.Attribute):
                return self.node.func.value
            about = limited_input(self.group, self.op)
            values = [*values[about:], *values[:about]]
            return next((each for each in values if not is_number(each)), None)
        if isinstance(self.node, ast.BinOp):
            sides = (self.node.left, self.node.right)
        elif isinstance(self.node, ast.Compare):
            sides = (self.node.left, self.node.comparators[0])
        else:
            return None
        return next((each for each in sides if not is_number(each)), None)

    @property
    def statement(self) -> ast.stmt | None:
        if self.node is not None:
            return self.code.statement(self.node)
        return self.code.statement_at(self.source.line)

    @property
    def library(self) -> Library | None:
        anchor = self.node or self.statement
        return library_for(self.code, anchor, self.modules) if anchor is not None else None

    @property
    def modules(self) -> dict[str, str]:
        return self.program.modules(self.source.file)

    def draft(self) -> Draft:
        return Draft(self.code)

    def argument(self, position: int, name: str) -> ast.expr | None:
        """An argument of the call, by its position or by its name."""
        return argument_of(self.call, position, name) if self.call is not None else None


# Named first arguments.
_SUBJECTS = (
    "x", "input", "input_tensor", "a", "logits", "tensor", "value", "lengths", "params", "values", "t", "features",
)  # fmt: skip


def place_of_group(group: Group, op: int | None = None) -> Place | None:
    """Where the culprit of a finding, or another op, is written; `None` if the log has no line of the user's code for
    it."""
    index = group.culprit if op is None else op
    number = group.trace.ops[index].source if index >= 0 else None
    return place_at(group, number, index) if number is not None else None


def place_at(group: Group, number: int, op: int = -1) -> Place | None:
    """The same for a line of the trace, given by its number."""
    source = group.trace.sources[number]
    program = program_of(group.trace)
    code = program.at(source.file, source.line)
    if code is None:
        return None
    node = _node_of(group, code, source, op) if op >= 0 else None
    return Place(group, program, code, source, node, op)


def _node_of(group: Group, code: Code, source: Source, index: int) -> ast.expr | None:
    op = group.trace.ops[index]
    modules = program_of(group.trace).modules(source.file)
    python = tuple(name for name in _PYTHON if not modules.get(name, "").startswith("tensorflow."))
    found = [node for node in code.parts_at(source.line) if made_by(node, op) and not _is_constant(node, python)]
    if not found:
        # For a statement over several lines AutoGraph knows only one, which may be that of another part.
        around = code.parts_around(source.line)
        found = [node for node in around if made_by(node, op) and not _is_constant(node, python)]
    if len(found) < 2:
        return found[0] if found else None
    written = op.api or spoken(op.type)
    made = [
        place
        for place, each in enumerate(group.trace.ops)
        if (each.source, each.type, each.api) == (op.source, op.type, op.api)
    ]
    # A loop, or a function that is called several times, creates the same ops again, in the same order.
    if len(made) % len(found) == 0:
        return found[made.index(index) % len(found)]
    # `a > 1` is the same op as `1 < a`, which is rarer.
    exact = [node for node in found if not isinstance(node, ast.Compare) or OPERATORS[type(node.ops[0])] == written]
    if exact and len(made) % len(exact) == 0:
        return exact[made.index(index) % len(exact)]
    naming = [node for node in found if short(group) in code.names(node)]
    if len(naming) == 1:
        return naming[0]
    # Of nested calls, the innermost is the first that the value reaches; of several comparisons, each may be of data
    # only.
    if isinstance(found[0], (ast.Compare, ast.BinOp)) and not _are_nested(found):
        return None
    return found[0]


def _are_nested(nodes: list[ast.expr]) -> bool:
    return all(inner in ast.walk(outer) for inner, outer in itertools.pairwise(nodes))


def made_by(node: ast.AST, op: Op) -> bool:
    """Whether a call or an operator may have created an op: judged by the function that was called, or the operator."""
    name = op.api or spoken(op.type)
    if isinstance(node, ast.Call):
        return name_of(node.func) == name.rpartition(".")[2] or name_of(node.func) in _ALSO.get(op.type, ())
    if isinstance(node, ast.Compare):
        written = OPERATORS.get(type(node.ops[0])) if len(node.ops) == 1 else None
        # For an array and a tensor, Python compares the tensor with the array.
        return written is not None and name in (written, _TURNED.get(written))
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        return OPERATORS.get(type(node.op)) == name
    return False


# Other functions that create it.
_ALSO = {"Round": ("round", "rint"), "Select": ("where",), "SelectV2": ("where",), "Sign": ("sign",)}


def _is_constant(node: ast.expr, python: tuple[str, ...]) -> bool:
    """Whether Python or NumPy computes it, so that it creates no TensorFlow op."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).partition(".")[0] in python or _has_numbers_alone(node)
    sides = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
    return all(map(is_number, sides))


def _has_numbers_alone(call: ast.Call) -> bool:
    return bool(call.args) and all(map(is_number, call.args))
