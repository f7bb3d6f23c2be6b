"""Where a variable or a layer is created, and its name in the user's code."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from tb_gradflow.analyse.user_code.code import Code, Program, program_of, without_number
from tb_gradflow.analyse.user_code.place import Place
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.record.python import argument_of, calls_within, name_of
from tb_gradflow.record.report import SourceReport
from tb_gradflow.record.schema import Trace

MAKERS = ("Variable", "add_weight", "get_variable", "add_variable")
"""Functions that create a variable."""


@dataclass(frozen=True)
class Definition:
    """A call that creates a variable or a layer, or compiles a model.

    Attributes:
        code: The passage.
        call: The call.
    """

    code: Code
    call: ast.Call

    @property
    def source(self) -> SourceReport:
        """Its line."""
        passage, line = self.code.passage, self.call.lineno
        return SourceReport(passage.file, passage.line + line - 1, self.code.lines[line - 1].strip())

    @property
    def bound_to(self) -> str:
        """The target that it is assigned to, such as `self.scale`; empty if there is none."""
        outer = self.code.parent(self.call)
        return self.code.written(outer.targets[0]) if isinstance(outer, ast.Assign) and len(outer.targets) == 1 else ""

    @property
    def attribute(self) -> str:
        """The last part of the target."""
        return self.bound_to.rpartition(".")[2]

    @property
    def name(self) -> str:
        """The name that the call gives what it creates; empty if it gives none."""
        given = argument_of(self.call, -1, "name")
        if given is None and name_of(self.call.func) in ("add_weight", "get_variable") and self.call.args:
            given = self.call.args[0]
        return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else ""


def definition_of_variable(program: tuple[Code, ...], name: str, types: Collection[str] = ()) -> Definition | None:
    """The only call that creates the variable with this name; of several, the only one in a class with one of the names
    `types`. `None` if there is none."""
    last = name.rpartition("/")[2].partition(":")[0]
    found = [Definition(code, call) for code in program for call in calls_within(code.tree, *MAKERS)]
    named = [definition for definition in found if definition.name == last]
    chosen = named or [definition for definition in found if not definition.name and definition.attribute == last]
    if len(chosen) > 1 and types:
        chosen = [definition for definition in chosen if any(of.name in types for of in _classes_around(definition))]
    return chosen[0] if len(chosen) == 1 else None


def shared_definition(program: tuple[Code, ...], name: str, others: Collection[str]) -> Definition | None:
    """The only call that creates the variable and some of the others, and no more: in a loop over their names, or in a
    function that is called with each of them. `None` if there is none."""
    last, known = name.rpartition("/")[2], {each.rpartition("/")[2] for each in others}
    found = [
        Definition(code, node)
        for code in program
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Call) and name_of(node.func) in MAKERS
        if last in (made := _names_made(program, code, node)) and made <= known
    ]
    return found[0] if len(found) == 1 else None


def _names_made(program: tuple[Code, ...], code: Code, call: ast.Call) -> set[str]:
    """The names that a call gives to what it creates, if its argument is a name that stands for several strings."""
    given = argument_of(call, -1, "name")
    return _strings_at(program, code, call, given.id) if isinstance(given, ast.Name) else set()


def _strings_at(program: tuple[Code, ...], code: Code, node: ast.AST, name: str) -> set[str]:
    """The strings that a name stands for at a node."""
    found: set[str] = set()
    for around in code.around(node):
        for loop in [around] if isinstance(around, ast.For) else getattr(around, "generators", []):
            found.update(_strings_of(loop.target, loop.iter, name))
        if isinstance(around, (ast.FunctionDef, ast.Lambda)):
            calling = program if code.scope(around) is code.tree else (code,)
            found.update(_strings_given(program, calling, _name_of_function(code, around), around, name))
            break
    return found


def _strings_of(target: ast.expr, values: ast.expr, name: str) -> Iterator[str]:
    """The strings that a name stands for in a loop over values that are written out."""
    listed = values.elts if isinstance(values, (ast.List, ast.Tuple)) else []
    for each in listed:
        are_tuples = isinstance(target, ast.Tuple) and isinstance(each, ast.Tuple)
        pairs = (
            zip(*(getattr(side, "elts", ()) for side in (target, each)), strict=False)
            if are_tuples
            else [(target, each)]
        )
        for part, value in pairs:
            if isinstance(part, ast.Name) and part.id == name and isinstance(value, ast.Constant):
                yield str(value.value)


def _name_of_function(code: Code, function: ast.FunctionDef | ast.Lambda) -> str:
    """The name that calls it; empty for a lambda without one."""
    outer = code.parent(function)
    targets = outer.targets if isinstance(outer, ast.Assign) and len(outer.targets) == 1 else []
    return function.name if isinstance(function, ast.FunctionDef) else "".join(map(code.written, targets))


def _strings_given(
    program: tuple[Code, ...],
    calling: tuple[Code, ...],
    called: str,
    function: ast.FunctionDef | ast.Lambda,
    name: str,
) -> Iterator[str]:
    """The strings that the calls of a function give to its parameter."""
    parameters = [each.arg for each in function.args.args]
    calls = [(code, node) for code in calling for node in ast.walk(code.tree) if isinstance(node, ast.Call)]
    for code, node in calls:
        # A function that calls itself passes its own parameter on.
        inside = function in code.around(node)
        if name in parameters and isinstance(node.func, ast.Name) and node.func.id == called and not inside:
            value = argument_of(node, parameters.index(name), name)
            if isinstance(value, ast.Constant):
                yield str(value.value)
            elif isinstance(value, ast.Name):
                yield from _strings_at(program, code, node, value.id)


def _classes_around(defined: Definition) -> Iterator[ast.ClassDef]:
    return (outer for outer in defined.code.around(defined.call) if isinstance(outer, ast.ClassDef))


def definition_of_layer(program: tuple[Code, ...], trace: Trace, name: str) -> Definition | None:
    """The only call that creates the layer with this name: found by the name in the call, by the attribute that holds
    the layer, or as the only one of its class."""
    calls = list(_calls_of_classes(program))
    named = [definition for definition in calls if definition.name == name]
    if len(named) == 1:
        return named[0]
    kinds = {layer.type for layer in trace.layers if layer.name == name}
    of_class = [definition for definition in calls if name_of(definition.call.func) in kinds]
    bound = [definition for definition in of_class if definition.attribute == name]
    layers = {layer.name for layer in trace.layers if layer.type in kinds}
    chosen = bound or (of_class if len(of_class) == len(layers) == 1 else [])
    return chosen[0] if len(chosen) == 1 else _by_number(of_class, layers, name)


def _calls_of_classes(program: tuple[Code, ...]) -> Iterator[Definition]:
    for code in program:
        yield from (Definition(code, call) for call in calls_within(code.tree) if name_of(call.func)[:1].isupper())


def creation_of_layer(program: tuple[Code, ...], trace: Trace, name: str) -> Definition | None:
    """The only call that creates the layer with this name, alone or with others: the call of a function of the program
    that is given the name; a call that computes such a name; or the only call of its class, if it is run repeatedly."""
    if (defined := definition_of_layer(program, trace, name)) is not None:
        return defined
    calls = list(_calls_of_classes(program))
    kinds = {layer.type for layer in trace.layers if layer.name == name}
    own = {each.name for code in program for each in ast.walk(code.tree) if isinstance(each, ast.FunctionDef)}
    given = [
        Definition(code, call)
        for code in program
        for call in calls_within(code.tree)
        if name_of(call.func) in own and _is_given(call, name)
    ]
    by_default = any(without_number(name) == kind.lower() for kind in kinds)
    own_class = any(
        isinstance(each, ast.ClassDef) and each.name in kinds for code in program for each in code.tree.body
    )
    of_class = [each for each in calls if name_of(each.call.func) in kinds]
    computed = [each for each in of_class if _may_be_named(argument_of(each.call, -1, "name"), name) and not by_default]
    # A library, such as `keras.applications`, creates layers of the same class.
    repeated = [
        each
        for each in of_class
        if _may_name(each.call, by_default=by_default, own_class=own_class)
        and len(of_class) == 1
        and _is_run_again(program, each.code, each.call)
    ]
    return next((found[0] for found in (given, computed, repeated) if len(found) == 1), None)


def _may_name(call: ast.Call, *, by_default: bool, own_class: bool) -> bool:
    """Whether a call may create a layer with a name that Keras gives, or with another one, by an expression that is
    not known, or in a class of the program."""
    given = argument_of(call, -1, "name")
    if given is None:
        return by_default or own_class or any(word.arg is None for word in call.keywords)
    return not isinstance(given, (ast.Constant, ast.JoinedStr)) and not (by_default and isinstance(given, ast.BinOp))


def _is_run_again(program: tuple[Code, ...], code: Code, node: ast.AST, depth: int = 5) -> bool:
    """Whether a node is in a loop, or in a function or class that is called more than once, or from such a place."""
    if _is_repeated(code, node):
        return True
    outer = [each for each in code.around(node) if isinstance(each, (ast.FunctionDef, ast.ClassDef))]
    # A method is called by a name that others have too.
    names = {each.name for each in outer if not isinstance(code.parent(each), ast.ClassDef)}
    uses = [(each, call) for each in program for call in calls_within(each.tree) if name_of(call.func) in names]
    return len(uses) > 1 or any(depth > 0 and _is_run_again(program, each, call, depth - 1) for each, call in uses)


def _is_given(call: ast.Call, name: str) -> bool:
    values = (*call.args, *(each.value for each in call.keywords))
    return any(isinstance(value, ast.Constant) and value.value == name for value in values)


def _may_be_named(given: ast.expr | None, name: str) -> bool:
    """Whether a string that is computed may be this name: `f"block_{number}"` and `block_3`."""
    if not isinstance(given, ast.JoinedStr) or not any(isinstance(part, ast.Constant) for part in given.values):
        return False
    parts = (re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".+" for part in given.values)
    return re.fullmatch("".join(parts), name) is not None


def _by_number(calls: list[Definition], names: set[str], name: str) -> Definition | None:
    """Keras numbers layers of one class without explicit names in the order of their creation: `dense`, `dense_1`.
    `None` if that is not the order in which they are written."""
    numbers = {layer: _NUMBER.search(layer) for layer in names}
    ordered = sorted(names, key=lambda layer: int(found[1]) if (found := numbers[layer]) is not None else -1)
    stems = {layer[: found.start()] if (found := numbers[layer]) is not None else layer for layer in names}
    scopes = {id(definition.code.scope(definition.call)) for definition in calls}
    once = all(_is_made_once(each) and not each.name and not _is_repeated(each.code, each.call) for each in calls)
    if name not in names or len(stems) != 1 or len(calls) != len(names) or len(scopes) != 1 or not once:
        return None
    return sorted(calls, key=lambda definition: definition.code.span(definition.call))[ordered.index(name)]


def _is_made_once(defined: Definition) -> bool:
    # For example in the list of a `Sequential`, or called at once: `x = Dense(8)(x)`.
    return bool(defined.bound_to) or defined.code.is_evaluated_once(defined.call)


_NUMBER = re.compile(r"_(\d{1,9})$")


def _is_repeated(code: Code, node: ast.AST) -> bool:
    loops = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.DictComp)
    return any(isinstance(outer, loops) for outer in code.around(node))


def compiling(program: tuple[Code, ...]) -> Definition | None:
    """The only call that compiles a model. `None` if there is none."""
    found = [Definition(code, call) for code in program for call in calls_within(code.tree, "compile")]
    compiled = [each for each in found if not each.code.written(each.call.func).startswith("re.")]
    return compiled[0] if len(compiled) == 1 else None


def layers_of_group(group: Group) -> Iterator[str]:
    """The layers of a finding's variables, innermost first, each once."""
    seen: dict[str, None] = {}
    for name in group.names:
        for part in reversed(name.split("/")[:-1]):
            seen.setdefault(part)
    yield from seen


def expression_of(place: Place, name: str) -> str | None:
    """How the function at a place can refer to a variable: the name or attribute that it is bound to, or the trainable
    variables of its layer if each of them is in the group; `None` if that is not known."""
    program = place.program.of_file(place.source.file)
    defined = definition_of_variable(program, name)
    if defined is not None and defined.bound_to and _is_seen_from(place, defined):
        return defined.bound_to
    *parts, attribute = name.split("/")
    for number in reversed(range(len(parts))):
        layer = definition_of_layer(program, place.group.trace, parts[number])
        if layer is not None and layer.bound_to and _is_seen_from(place, layer):
            scope = "/".join(parts[: number + 1])
            variables = place.group.trace.variables
            others = [variable.name for variable in variables if variable.trainable and not variable.computed]
            if all(other in place.group.names for other in others if other.startswith(f"{scope}/")):
                return f"{layer.bound_to}.trainable_variables"
            return f"{layer.bound_to}.{attribute}" if number == len(parts) - 1 and attribute.isidentifier() else None
    return None


def _is_seen_from(place: Place, defined: Definition) -> bool:
    """Whether a name can be read in the function at a place."""
    statement = place.statement
    if statement is None:
        return False
    if defined.bound_to.startswith("self."):
        method, maker = place.code.scope(statement), defined.code.scope(defined.call)
        return (
            defined.code is place.code
            and place.code.parent(method) is defined.code.parent(maker)
            and isinstance(place.code.parent(method), ast.ClassDef)
        )
    if not defined.bound_to.isidentifier():
        return False
    scope = defined.code.scope(defined.call)
    return scope is defined.code.tree or (defined.code is place.code and scope in place.code.around(statement))


def are_built_before(trace: Trace, variables: Iterable[str]) -> bool:
    """Whether no code that the step runs makes a layer of the types that these variables belong to, but other code of
    the program does."""
    names = {part for name in variables for part in name.split("/")[-2:-1]}
    types = {layer.type for layer in trace.layers if layer.name in names}
    program = program_of(trace)
    made = [(code, call) for code in program.passages if types for call in calls_within(code.tree, *types)]
    running = _run_by_step(trace, program)
    return bool(made) and not any(
        _is_in_a_loop_at_the_top(code, call) or code.function(call) in running for code, call in made
    )


def _is_in_a_loop_at_the_top(code: Code, node: ast.AST) -> bool:
    """Whether a loop at the top level of a file contains it, such as that of a training."""
    return code.function(node) is None and code.is_in_loop(node)


def _run_by_step(trace: Trace, program: Program) -> set[ast.AST]:
    """The functions with a line that made an op of the step, and those that they call, by name."""
    by_name: dict[str, list[ast.AST]] = {}
    for code in program.passages:
        for node in ast.walk(code.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                by_name.setdefault(node.name, []).append(node)
            if isinstance(node, ast.ClassDef):
                inside = [method for method in node.body if isinstance(method, ast.FunctionDef)]
                by_name.setdefault(node.name, []).extend(method for method in inside if method.name == "__init__")
    places = [(program.at(source.file, source.line), source.line) for source in trace.sources]
    found: set[ast.AST] = {
        function
        for code, line in places
        if code is not None
        for statement in code.statements_at(line)
        if (function := code.function(statement)) is not None
    }
    queue = list(found)
    for running in queue:  # grows while it is walked
        called = {name_of(call.func) for call in calls_within(running)} - {"__init__"}
        new = [function for name in called for function in by_name.get(name, ()) if function not in found]
        found.update(new)
        queue.extend(new)
    return found
