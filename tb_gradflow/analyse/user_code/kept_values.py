"""Numbers and arrays that the user's code takes from a variable once, and keeps."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass

from tb_gradflow.analyse.evidence.suspects import Suspect
from tb_gradflow.analyse.user_code.code import Code, Program, program_of
from tb_gradflow.analyse.user_code.definitions import definition_of_variable
from tb_gradflow.record.python import FUNCTIONS, calls_within, lines_of, name_of, names_bound, parameters_in
from tb_gradflow.record.schema import Trace


@dataclass(frozen=True, slots=True)
class KeptValue:
    """A name for what was computed in Python from the value of a variable.

    Attributes:
        name: As written, such as `self.kernel`.
        file: The file.
        line: The line that computes it.
        reads: For each function that reads it, the line that does, and those between which the function is.
    """

    name: str
    file: str
    line: int
    reads: tuple[tuple[int, range], ...]


_TAKING = frozenset({"numpy", "item", "tolist", "float", "int", "convert_to_numpy", "get_value", "eval"})
"""Functions and methods that give the value of a tensor to Python."""

_COMPUTING = ("numpy", "math", "tensorflow", "keras", "tf_keras")
"""Packages whose functions compute a value."""

_NOT_VALUES = frozenset({"shape", "dtype", "ndim", "name", "device"})
_OF_SHAPE = frozenset({"shape", "ndim", "size", "zeros_like", "ones_like", "empty_like"})


def kept_in_step(suspect: Suspect, number: int) -> tuple[KeptValue, int] | None:
    """What was computed from a variable that the step does not read, and is read by a function that computes the loss;
    and the line that reads it. What is computed from data alone is not in a trace, but the rest of the function is."""
    topology, target = suspect.topology, suspect.target
    variable = topology.trace.variables[number]
    if target < 0 or variable.computed or topology.readers[number]:
        return None
    hops = topology.influence(target).hops
    ran = {op.source for place, op in enumerate(topology.trace.ops) if op.source is not None and hops[place] >= 0}
    sources = [topology.trace.sources[place] for place in ran]
    # A loss that nothing in the step computes is such a value itself.
    is_given = topology.trace.targets[target].op < 0
    for kept in kept_from(topology.trace, number):
        lines = {source.line for source in sources if source.file == kept.file}
        for line, function in kept.reads:
            if is_given or not lines.isdisjoint(function):
                return kept, line
    return None


def kept_from(trace: Trace, number: int) -> Iterator[KeptValue]:
    """What is computed from a variable of a trace."""
    variable = trace.variables[number]
    owner = variable.name.rpartition("/")[0].rpartition("/")[2]
    types = {layer.type for layer in trace.layers if layer.name.rpartition("/")[2] == owner}
    written = variable.written or variable.name
    yield from kept_values(program_of(trace), written, types)
    yield from (kept for _, _, kept in remembered(program_of(trace), written, types))


def kept_values(program: Program, variable: str, types: Collection[str]) -> Iterator[KeptValue]:
    """Those that are computed where the variable is created, in the same function or at the top level of the file.

    `types` are the classes of its layer.
    """
    defined = definition_of_variable(program.passages, variable, types)
    if defined is None or not defined.bound_to:
        return
    code = defined.code
    file, home = code.passage.file, code.function(defined.call)
    passages = program.of_file(file) if home is None else (code,)
    blocks = [(passage, passage.tree.body) for passage in passages] if home is None else [(code, home.body)]
    modules = {name for name, module in program.modules(file).items() if module.partition(".")[0] in _COMPUTING}
    taken = set[str]()
    for passage, statement in ((passage, statement) for passage, block in blocks for statement in block):
        if not isinstance(statement, ast.Assign) or defined.call in ast.walk(statement):
            continue
        value = statement.value
        if taken.isdisjoint(_written(passage, value)) and not _takes(passage, value, defined.bound_to, modules):
            continue
        for target in (part for node in statement.targets for part in ast.walk(node)):
            if not isinstance(target, (ast.Name, ast.Attribute)) or not isinstance(target.ctx, ast.Store):
                continue
            name = passage.written(target)
            taken.add(name)
            line = statement.lineno + passage.passage.line - 1
            inside = home if isinstance(target, ast.Name) else None
            yield KeptValue(name, file, line, tuple(_reads(passages, name, home, inside)))


def remembered(program: Program, variable: str, types: Collection[str]) -> Iterator[tuple[Code, ast.If, KeptValue]]:
    """What is computed from a variable in `if self.kept is None:`, so only by the first call, and the condition."""
    defined = definition_of_variable(program.passages, variable, types)
    if defined is None or not defined.bound_to.startswith("self."):
        return
    code = defined.code
    file, before = code.passage.file, code.passage.line - 1
    modules = {name for name, module in program.modules(file).items() if module.partition(".")[0] in _COMPUTING}
    for guard in (node for node in ast.walk(code.tree) if isinstance(node, ast.If) and not node.orelse):
        method, kept = code.function(guard), _missing(code, guard.test)
        if method is None or not kept or code.owner(method) is not code.owner(defined.call):
            continue
        for statement in (each for each in guard.body if isinstance(each, ast.Assign)):
            if kept in map(code.written, statement.targets) and _takes(
                code, statement.value, defined.bound_to, modules
            ):
                callers = {code.function(call) for call in calls_within(code.tree, method.name)} - {None}
                after = [each for each in ast.walk(method) if isinstance(each, ast.Return)]
                line = (after[-1].lineno if after else statement.lineno) + before
                reads = tuple(
                    (line, range(each.lineno + before, lines_of(each).stop + before))
                    for each in (method, *callers)
                    if each is not None
                )
                yield code, guard, KeptValue(kept, file, statement.lineno + before, reads)


def _missing(code: Code, test: ast.expr) -> str:
    """The attribute for which a condition is `attribute is None`; empty for another condition."""
    is_none = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is) and len(test.ops) == 1
    if not is_none or not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Attribute):
        return ""
    other = test.comparators[0]
    return code.written(test.left) if isinstance(other, ast.Constant) and other.value is None else ""


def _takes(code: Code, value: ast.expr, variable: str, modules: Set[str]) -> bool:
    """Whether an expression computes a number, an array or a tensor from a variable, rather than an object that holds
    it, such as a model or a list."""
    for part in _walked(value):
        if isinstance(part, (ast.BinOp, ast.UnaryOp)) and variable in _operands(code, part):
            return True
        if isinstance(part, ast.Call) and variable in _written(code, part):
            is_function = name_of(part.func)[:1].islower() and code.written(part.func).partition(".")[0] in modules
            if name_of(part.func) in _TAKING or is_function:
                return True
    return False


def _operands(code: Code, node: ast.BinOp | ast.UnaryOp) -> set[str]:
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.operand,)
    return {code.written(side) for side in sides}


def _reads(
    passages: Sequence[Code], name: str, home: ast.AST | None, inside: ast.AST | None
) -> Iterator[tuple[int, range]]:
    """The functions other than `home` that read a name; if it is a local one, those `inside` the function that has it
    that do not use the name for something else."""
    for code in passages:
        before = code.passage.line - 1
        for function in (node for node in ast.walk(code.tree) if isinstance(node, FUNCTIONS) and node is not home):
            if inside is not None and (
                inside not in code.around(function) or name in names_bound(function) | parameters_in(function)
            ):
                continue
            lines = [
                node.lineno
                for node in ast.walk(function)
                if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
                if code.written(node) == name
            ]
            if lines:
                yield min(lines) + before, range(function.lineno + before, lines_of(function).stop + before)


def _written(code: Code, node: ast.AST) -> set[str]:
    return {code.written(part) for part in _walked(node) if isinstance(part, (ast.Name, ast.Attribute))}


def _walked(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is in it, without what does not depend on values, such as the shape of an array."""
    if (isinstance(node, ast.Attribute) and node.attr in _NOT_VALUES) or (
        isinstance(node, ast.Call) and name_of(node.func) in _OF_SHAPE
    ):
        return
    yield node
    for part in ast.iter_child_nodes(node):
        yield from _walked(part)
