"""Fixes of how a variable is created, written and read."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from tb_gradflow.analyse.edits.left_tensorflow import tensorflow_of
from tb_gradflow.analyse.evidence.zeros import began_at_zero, zero_factors
from tb_gradflow.analyse.user_code.candidate import Candidate, candidates, in_place_of
from tb_gradflow.analyse.user_code.code import Code, program_of
from tb_gradflow.analyse.user_code.definitions import (
    MAKERS,
    Definition,
    definition_of_layer,
    definition_of_variable,
    layers_of_group,
    shared_definition,
)
from tb_gradflow.analyse.user_code.draft import Draft, dissolved, is_plain
from tb_gradflow.analyse.user_code.inside import Filled, Inside
from tb_gradflow.analyse.user_code.kept_values import kept_in_step, remembered
from tb_gradflow.analyse.user_code.library import keras_of
from tb_gradflow.analyse.user_code.place import Place, place_of_group
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.record.python import FUNCTIONS, argument_of, calls_within, is_number, name_of, uses_of
from tb_gradflow.record.report import Edit
from tb_gradflow.record.schema import COMPILED_EARLY, SNAPSHOT

_NOTHING = "Nothing else changes."


def floating(group: Group) -> Iterator[Candidate]:
    """Makes an integer variable a floating-point one."""
    for number, name in zip(group.variables, group.names, strict=True):
        defined = _defined(group, name)
        if defined is None or not group.trace.variables[number].dtype.lstrip("u").startswith("int"):
            return
        draft, call = Draft(defined.code), defined.call
        changed = False
        for node in ast.walk(call):
            if isinstance(node, ast.Attribute) and node.attr in ("int32", "int64", "int16", "int8"):
                draft.replace(node, f"{defined.code.written(node.value)}.float32")
                changed = True
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("int"):
                draft.replace(node, '"float32"')
                changed = True
        given = argument_of(call, 0, "initial_value")
        if given is not None and name_of(call.func) == "Variable" and not changed:
            for node in ast.walk(given):
                if isinstance(node, ast.Constant) and type(node.value) is int:
                    draft.replace(node, f"{node.value}.0")
        yield from candidates("Code that needs an integer has to round it.", draft.edit())


def trainable(group: Group) -> Iterator[Candidate]:
    """Removes the flag that freezes it. Of layers inside of a frozen model, some may have to stay frozen."""
    if group.verdict.severity == "warning":
        return
    program = _program(group)
    defined = [found for name in group.names if (found := definition_of_variable(program, name)) is not None]
    layers = [
        found
        for name in layers_of_group(group)
        if (found := definition_of_layer(program, group.trace, name)) is not None
    ]
    for found in (*defined, *layers):
        flag = next((item for item in found.call.keywords if item.arg == "trainable"), None)
        if flag is not None and isinstance(flag.value, ast.Constant) and flag.value.value is False:
            yield from candidates("This makes it trainable.", Draft(found.code).replace(flag.value, "True").edit())
            return
    names = {each.bound_to for each in layers if each.bound_to}
    for code in program:
        for node in ast.walk(code.tree):
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Attribute):
                continue
            target, value = node.targets[0], node.value
            frozen = isinstance(value, ast.Constant) and value.value is False and target.attr == "trainable"
            if frozen and code.written(target.value) in names:
                yield from candidates("This makes it trainable.", Draft(code).replace(value, "True").edit())
                return


def tracked(group: Group) -> Iterator[Candidate]:
    """Variables of Keras instead of a layer's plain `tf.Variable`; layers that a `Lambda` calls, as its attributes;
    layers that a method creates in each step, created in `__init__`."""
    program = _program(group)
    if group.verdict.severity == "error":
        yield from candidates("The layer keeps its weights from step to step.", _created_once(group))
    if group.verdict.severity != "warning":
        return
    named = [definition_of_variable(program, name) for name in group.names]
    unnamed = [each for each in _attributes_of_layers(program) if argument_of(each.call, -1, "name") is None]
    # TensorFlow calls each of those that have no name `Variable`.
    defined = [*filter(None, named), *(unnamed if len(unnamed) == named.count(None) else ())]
    if len(defined) == len(named) and all(map(_is_attribute_of_a_layer, defined)):
        yield from candidates(_NOTHING, _of_keras(group, defined))
        return
    owners = dict.fromkeys(name.split("/")[-2] for name in group.names if "/" in name)
    layers = [definition_of_layer(program, group.trace, owner) for owner in owners]
    names = [each.bound_to for each in layers if each is not None and each.bound_to.isidentifier()]
    if names and len(names) == len(owners):
        yield from candidates("Saving a model keeps the weights, but not the code of a `Lambda`.", _held(group, names))


def _created_once(group: Group) -> Edit | None:
    owners = dict.fromkeys(name.split("/")[-2] for name in group.names if "/" in name)
    layers = [definition_of_layer(_program(group), group.trace, owner) for owner in owners]
    made = layers[0] if layers else None
    if made is None or any(each is None or each.code is not made.code for each in layers):
        return None
    draft, code = Draft(made.code), made.code
    for name, layer in zip(owners, layers, strict=True):
        assert layer is not None
        around = list(code.around(layer.call))
        owner = next((each for each in around if isinstance(each, ast.ClassDef)), None)
        methods = {each.name: each for each in owner.body if isinstance(each, ast.FunctionDef)} if owner else {}
        if not name.isidentifier() or "__init__" not in methods or any(isinstance(each, _LOOPS) for each in around):
            return None
        is_taken = name in methods or f"self.{name}" in {code.written(each) for each in ast.walk(code.tree)}
        attribute = f"self.{name}_layer" if is_taken else f"self.{name}"
        draft.insert_after(methods["__init__"].body[-1], f"{attribute} = {code.written(layer.call)}")
        draft.replace(layer.call, attribute)
    return draft.edit()


_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)


def _attributes_of_layers(program: tuple[Code, ...]) -> Iterator[Definition]:
    for code in program:
        for node in ast.walk(code.tree):
            if isinstance(node, ast.Call) and name_of(node.func) == "Variable":
                defined = Definition(code, node)
                if _is_attribute_of_a_layer(defined) and argument_of(node, 1, "trainable") is None:
                    yield defined


def _is_attribute_of_a_layer(defined: Definition) -> bool:
    """Whether a class of Keras layers assigns it to an attribute."""
    around = (each for each in defined.code.around(defined.call) if isinstance(each, ast.ClassDef))
    owner = next(around, None)
    bases = [name_of(each) for each in owner.bases] if owner is not None else []
    return defined.bound_to.startswith("self.") and any(each in ("Layer", "Model") for each in bases)


def _of_keras(group: Group, defined: list[Definition]) -> Edit | None:
    code = defined[0].code
    keras = keras_of(program_of(group.trace).modules(code.passage.file))
    if not keras or any(each.code is not code for each in defined):
        return None
    draft = Draft(code)
    for each in defined:
        call = each.call
        value = argument_of(call, 0, "initial_value")
        named = [item for item in call.keywords if item.arg in ("dtype", "name")]
        others = {item.arg for item in call.keywords} - {"initial_value", "trainable", "dtype", "name"}
        if name_of(call.func) != "Variable" or value is None or isinstance(value, ast.Lambda) or others:
            return None
        rest = [f"{item.arg}={code.written(item.value)}" for item in named]
        draft.replace(call, f"{keras}.Variable({', '.join([code.written(value), *rest])})")
    return draft.edit()


def _held(group: Group, layers: list[str]) -> Edit | None:
    """The layers as attributes of the only `Lambda` that calls them."""
    found = [
        (code, node)
        for code in _program(group)
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Call) and name_of(node.func) == "Lambda" and node.args
        if code.names(_function_of(code, node.args[0])).issuperset(layers)
    ]
    if len(found) != 1:
        return None
    (code, call), draft = found[0], Draft(found[0][0])
    statement, outer = code.statement(call), code.parent(call)
    if not isinstance(statement, ast.Assign) or not code.is_evaluated_once(call):
        return None
    name = code.written(statement.targets[0])
    if statement.value is call:
        return draft.insert_after(statement, *(f"{name}.{each} = {each}" for each in layers)).edit()
    if not isinstance(outer, ast.Call) or outer.func is not call:
        return None
    name = draft.free_name(call, "applied", "called")
    held = [f"{name}.{each} = {each}" for each in layers]
    return draft.insert_before(statement, f"{name} = {code.written(call)}", *held).replace(call, name).edit()


def _function_of(code: Code, given: ast.expr) -> ast.AST:
    """The function that a name stands for, if the same passage defines it."""
    defined = (each for each in ast.walk(code.tree) if isinstance(each, ast.FunctionDef))
    return next((each for each in defined if isinstance(given, ast.Name) and each.name == given.id), given)


def assigned_in_place(group: Group) -> Iterator[Candidate]:
    """`w.assign(w - step)` instead of `w = w - step`, which replaces the variable with a tensor; each of them, if one
    part of the program replaces several."""
    for code in _program(group):
        draft, names = Draft(code), set[str]()
        for node in ast.walk(code.tree):
            written, in_place = "", None
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                body = f"\n{code.indentation(node)}    "
                written, in_place = _assigned(group, code, node.targets[0], node.value, body)
            elif isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub)):
                written = code.written(node.target)
                if _is_rebound(group, written):
                    verb = "assign_add" if isinstance(node.op, ast.Add) else "assign_sub"
                    in_place = f"{written}.{verb}({code.written(node.value)})"
            if in_place is not None and written not in names:
                draft.replace(node, in_place)
                names.add(written)
            elif isinstance(node, ast.Assign) and (several := _each_assigned(group, code, node)):
                draft.replace(node, several)
                names.add(several)
        if names:
            yield from candidates(_NOTHING, draft.edit())
            return


def in_place(group: Group) -> tuple[str, str] | None:
    """The one-line assignment that replaces the first of the variables with a tensor, and what to write instead; None
    if there is none."""
    for code in _program(group):
        for node in ast.walk(code.tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and "\n" not in code.written(node):
                _, written = _assigned(group, code, node.targets[0], node.value)
                if written is not None:
                    return code.written(node), written
    return None


def _assigned(group: Group, code: Code, target: ast.expr, value: ast.expr, body: str = " ") -> tuple[str, str | None]:
    """What an assignment replaces, and the statement that changes it in place instead; where that is a loop, `body`
    begins what it does."""
    written, kinds = code.written(target), (ast.Name, ast.Attribute, ast.Subscript)
    is_entry = isinstance(target, ast.Subscript) and _is_rebound_entry(group, code, target)
    if not isinstance(target, kinds) or not (is_entry or _is_rebound(group, written)):
        return written, None
    reads = [code.written(each) for each in ast.walk(value) if isinstance(each, kinds)]
    if isinstance(value, ast.ListComp):
        return written, _each_in_place(code, written, value, body)
    is_part = isinstance(target, ast.Subscript)
    is_list = any("[" in group.trace.variables[each].rebound for each in group.variables) and not is_part
    return written, f"{written}.assign({code.written(value)})" if written in reads and not is_list else None


def _each_in_place(code: Code, listed: str, value: ast.ListComp, body: str) -> str | None:
    """`for w, g in zip(ws, gs): w.assign(w - g)` for `[w - g for w, g in zip(ws, gs)]`."""
    loop = value.generators[0]
    if len(value.generators) > 1 or loop.ifs:
        return None
    pairs = [(loop.target, loop.iter)]
    if isinstance(loop.iter, ast.Call) and code.written(loop.iter.func) == "zip" and isinstance(loop.target, ast.Tuple):
        pairs = list(zip(loop.target.elts, loop.iter.args, strict=False))
    one = next((code.written(part) for part, whole in pairs if code.written(whole) == listed), None)
    if one is None:
        return None
    head = f"for {code.written(loop.target)} in {code.written(loop.iter)}:"
    return f"{head}{body}{one}.assign({code.written(value.elt)})"


def _each_assigned(group: Group, code: Code, node: ast.Assign) -> str:
    """`w, b = w - dw, b - db` as one statement for each variable; empty if it is another statement, or if a value reads
    a variable that would have changed by then."""
    target, value = node.targets[0], node.value
    if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple) or not code.starts_a_line(node):
        return ""
    if len(node.targets) > 1 or len(target.elts) != len(value.elts):
        return ""
    pairs = [_assigned(group, code, *pair) for pair in zip(target.elts, value.elts, strict=True)]
    for place, part in enumerate(value.elts):
        changed = {written for written, _ in pairs[:place]}
        if any(code.written(each) in changed for each in ast.walk(part) if isinstance(each, (ast.Name, ast.Attribute))):
            return ""
    lines = [in_place for _, in_place in pairs if in_place is not None]
    return ("\n" + code.indentation(node)).join(lines) if len(lines) == len(pairs) else ""


def _is_rebound_entry(group: Group, code: Code, target: ast.Subscript) -> bool:
    """Whether it is an entry of a dictionary with the name of a variable that was replaced; with a key that is not
    written out, the only such entry that a passage changes."""
    key, names = target.slice, {name.rpartition("/")[2].partition(":")[0] for name in group.names}
    if isinstance(key, ast.Constant):
        return key.value in names
    changed = [
        node
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript)
    ]
    return isinstance(key, ast.Name) and [each.targets[0] for each in changed] == [target]


def _is_rebound(group: Group, written: str) -> bool:
    last = written.rpartition(".")[2].partition("[")[0]
    places = (group.trace.variables[each].rebound for each in group.variables)
    rebound = {place.rpartition(".")[2].partition("[")[0] for place in places} - {""}
    return last in (rebound or {name.rpartition("/")[2].partition(":")[0] for name in group.names})


def kept_beside(group: Group) -> Iterator[Candidate]:
    """The value itself, instead of reading it back from the variable in which it was stored."""
    place = place_of_group(group)
    written = _store(group)
    if written is not None:
        place = written
    if place is None:
        return
    statement = place.statement
    calls = [
        node
        for node in (ast.walk(statement) if statement is not None else ())
        if isinstance(node, ast.Call) and name_of(node.func) in ("assign", "assign_add", "assign_sub")
    ]
    if len(calls) != 1 or statement is None:
        return
    beside = _beside(place.code, statement, calls[0])
    yield from candidates("The variable still holds the value afterwards.", beside)
    if beside is None:
        yield from candidates(_OF_THIS_STEP, _in_an_attribute(group, place, statement, calls[0]))


_OF_THIS_STEP = (
    "The attribute holds the tensor of the current step: code that reads it must run after the code that sets it, in "
    "the same step."
)


def collected(group: Group) -> Iterator[Candidate]:
    """Stacks the values that loops assign to the elements of a variable of zeros, in their order."""
    place = _store(group) or place_of_group(group)
    statement = place.statement if place is not None else None
    call = statement.value if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None
    if place is None or statement is None or call is None or name_of(call.func) != "assign" or len(call.args) != 1:
        return
    element = call.func.value if isinstance(call.func, ast.Attribute) else None
    if place.library is None or place.library.is_keras or not isinstance(element, ast.Subscript):
        return
    code, library, array, loops = place.code, place.library, element.value, list[ast.For]()
    around = code.parent(statement)
    while isinstance(around, ast.For):
        loops.insert(0, around)
        around = code.parent(around)
    indices = element.slice.elts if isinstance(element.slice, ast.Tuple) else [element.slice]
    counts = [_count_of(loop) for loop in loops]
    if (
        not loops
        or not isinstance(array, ast.Name)
        or [*map(code.written, indices)] != [code.written(loop.target) for loop in loops]
    ):
        return
    block = code.block(loops[0])
    made = [
        each
        for each in block[: block.index(loops[0])]
        if isinstance(each, ast.Assign) and [code.written(target) for target in each.targets] == [array.id]
    ]
    shape = _shape_of_zeros(made[-1].value) if made else None
    sizes = shape.elts if isinstance(shape, (ast.Tuple, ast.List)) else [shape] if shape is not None else []
    ends = [code.written(each) if each is not None else "" for each in counts]
    uses = uses_of(code.scope(statement), array.id)
    others = [each for each in uses if isinstance(code.parent(each), ast.Attribute)]
    if shape is None or others or len(uses_of(loops[0], array.id)) != 1:
        return
    if [code.written(each) for each in sizes[: len(ends)]] != ends:
        return
    draft = place.draft()
    parts = draft.free_name(statement, "parts", f"{array.id}_parts")
    draft.replace(made[-1], f"{parts} = []").replace(statement, f"{parts}.append({code.written(call.args[0])})")
    for loop, end in zip(loops, ends, strict=True):
        draft.replace(loop.iter, f"range({end})")
    stacked = library("stack", parts)
    whole = stacked if len(loops) == 1 else library("reshape", stacked, code.written(shape))
    draft.insert_after(loops[0], f"{array.id} = {whole}")
    yield from candidates(_STACKED, draft.edit())


_STACKED = "The forward values do not change; the result is a tensor instead of a variable."


def _count_of(loop: ast.For) -> ast.expr | None:
    """How many passes a loop over `range` makes; `None` if it does not begin at zero."""
    call = loop.iter
    if not isinstance(call, ast.Call) or name_of(call.func) != "range" or call.keywords or loop.orelse:
        return None
    given = call.args
    if len(given) == 2 and is_number(given[0]) and ast.literal_eval(given[0]) == 0:
        given = given[1:]
    return given[0] if len(given) == 1 else None


def _shape_of_zeros(value: ast.expr) -> ast.expr | None:
    """The shape of `tf.Variable(tf.zeros(shape))`."""
    given = argument_of(value, 0, "initial_value") if isinstance(value, ast.Call) else None
    if not isinstance(value, ast.Call) or name_of(value.func) != "Variable" or not isinstance(given, ast.Call):
        return None
    return argument_of(given, 0, "shape") if name_of(given.func) == "zeros" else None


def _store(group: Group) -> Place | None:
    """The place where the variable is written, if the culprit reads it."""
    ops = group.trace.ops
    variable = group.op.reads if group.op is not None and group.op.writes is None else None
    if variable is None:
        return None
    writers = [index for index, op in enumerate(ops) if op.writes == variable]
    return place_of_group(group, writers[0]) if len(writers) == 1 else None


def _beside(code: Code, statement: ast.stmt, call: ast.Call) -> Edit | None:
    if not isinstance(call.func, ast.Attribute) or len(call.args) != 1 or not is_plain(call.func.value):
        return None
    function = code.function(statement)
    if function is None or code.is_in_loop(statement):
        return None
    if not code.is_evaluated_once(call):
        return None
    variable, given = code.written(call.func.value), call.args[0]
    if isinstance(call.func.value, ast.Subscript) or not code.starts_a_line(statement):
        return None
    draft = Draft(code)
    sign = {"assign_add": "+", "assign_sub": "-"}.get(call.func.attr)
    if isinstance(given, ast.Name) and sign is None:
        name = given.id
    else:
        name = code.free_name(call, variable.rpartition(".")[2].strip("_") or "value", "value", "new_value")
        value = code.written(given)
        draft.insert_before(
            statement, f"{name} = {variable} {sign} {code.operand(given)}" if sign else f"{name} = {value}"
        )
        if sign is None:
            draft.replace(given, name)
    if isinstance(statement, (ast.Assign, ast.Return)) and statement.value is call:
        if sign is None:
            kept = [] if isinstance(given, ast.Name) else [f"{name} = {code.written(given)}"]
            draft = Draft(code).insert_before(statement, *kept, f"{variable}.assign({name})")
            return draft.replace(call, name).edit()
        return None
    read_back = False
    for node in ast.walk(function):
        if not isinstance(node, (ast.Name, ast.Attribute)) or code.written(node) != variable:
            continue
        later = node.lineno > (statement.end_lineno or statement.lineno)
        outer = code.parent(node)
        stored = isinstance(getattr(node, "ctx", None), ast.Store)
        method = isinstance(outer, ast.Attribute) and outer.attr.startswith("assign")
        reading = outer if isinstance(outer, ast.Attribute) and outer.attr in ("value", "read_value") else None
        if later and not stored and not method:
            read_back = True
            if reading is not None:
                called = code.parent(reading)
                draft.replace(called if isinstance(called, ast.Call) else reading, name)
            else:
                draft.replace(node, name)
    return draft.edit() if read_back else None


def _in_an_attribute(group: Group, place: Place, statement: ast.stmt, call: ast.Call) -> Edit | None:
    """Keeps the value in a separate attribute, from which other methods of the class read it back."""
    code, function = place.code, place.code.function(statement)
    owner = code.parent(function) if function is not None else None
    if not isinstance(owner, ast.ClassDef) or not isinstance(statement, ast.Expr) or statement.value is not call:
        return None
    stored, given = (
        call.func.value if isinstance(call.func, ast.Attribute) else None,
        call.args[0] if call.args else None,
    )
    if not isinstance(stored, ast.Attribute) or not isinstance(stored.value, ast.Name) or given is None:
        return None
    if code.is_in_loop(statement):
        return None
    variable, base = code.written(stored), code.written(stored.value)
    taken = {each.attr for each in ast.walk(owner) if isinstance(each, ast.Attribute)}
    kept = next(f"{base}.{name}" for name in (f"{stored.attr}_now", f"{stored.attr}_of_step") if name not in taken)
    sign = {"assign_add": "+", "assign_sub": "-"}.get(name_of(call.func))
    value = f"{variable} {sign} {code.operand(given)}" if sign else code.written(given)
    draft = Draft(code).insert_before(statement, f"{kept} = {value}")
    draft.replace(call, f"{variable}.assign({kept})")
    lines, found = _lines_that_read_back(group, place, statement), False
    for method in owner.body:
        if not isinstance(method, ast.FunctionDef) or method is function:
            continue
        for node in ast.walk(method):
            if not isinstance(node, ast.Attribute) or code.written(node) != variable or isinstance(node.ctx, ast.Store):
                continue
            outer = code.parent(node)
            if node.lineno + code.passage.line - 1 not in lines or _is_assigned_by(outer):
                continue
            found = True
            reading = outer if isinstance(outer, ast.Attribute) and outer.attr in ("value", "read_value") else None
            called = code.parent(reading) if reading is not None else None
            draft.replace(called if isinstance(called, ast.Call) else reading or node, kept)
    return draft.edit() if found and code.starts_a_line(statement) else None


def _is_assigned_by(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Attribute) and node.attr.startswith(("assign", "scatter"))


def _lines_that_read_back(group: Group, place: Place, statement: ast.stmt) -> set[int]:
    """The lines of the file that read the value that a statement has assigned."""
    ops, offset, sources = group.trace.ops, place.code.passage.line - 1, group.trace.sources
    span = range(statement.lineno + offset, (statement.end_lineno or statement.lineno) + offset + 1)
    written = [op for op, each in enumerate(ops) if each.source is not None and sources[each.source].line in span]
    after = {user for op in written for user, _ in group.suspect.topology.consumers[op]}
    readers = [ops[each].source for each in after if "Read" in ops[each].type]
    return {sources[each].line for each in readers if each is not None and sources[each].file == place.source.file}


_LOSSES = {
    **{name: name for name in (
        "MeanSquaredError", "MeanAbsoluteError", "MeanAbsolutePercentageError", "MeanSquaredLogarithmicError",
        "BinaryCrossentropy", "CategoricalCrossentropy", "SparseCategoricalCrossentropy", "KLDivergence", "Poisson",
        "Hinge", "SquaredHinge", "CategoricalHinge",
    )},
    "LogCoshError": "LogCosh",
}  # fmt: skip
"""The loss that computes, of a batch, what a metric averages."""


def beside_a_metric(group: Group) -> Iterator[Candidate]:
    """The loss of the batch itself, instead of what a metric returns, which is updated as before."""
    place = place_of_group(group)
    statement = place.statement if place is not None else None
    if place is None or statement is None:
        return
    code, draft = place.code, place.draft()
    block = code.block(statement)
    for outer in block[block.index(statement) :] if statement in block else ():
        call = outer.value if isinstance(outer, ast.Assign) else None
        if not isinstance(call, ast.Call) or not code.starts_a_line(outer):
            continue
        if outer is statement:  # `loss = metric(y, p)`
            metric, given = call.func, call
            draft.insert_after(outer, f"{code.written(metric)}.update_state({_arguments(code, call)})")
        elif (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Call)
            and _is_result(code, call, statement)
        ):
            assert isinstance(call.func, ast.Attribute)
            metric, given = call.func.value, statement.value
        else:
            continue
        if instead := _loss_of(place, code.written(metric), given):
            yield from candidates("The loss is that of the batch alone.", draft.replace(call, instead).edit())
        return


def _is_result(code: Code, call: ast.Call, update: ast.Expr) -> bool:
    """Whether a call reads the result of the metric that a statement updates."""
    fed, read = (each.func if isinstance(each, ast.Call) else None for each in (update.value, call))
    if not isinstance(fed, ast.Attribute) or not isinstance(read, ast.Attribute):
        return False
    is_pair = (fed.attr, read.attr) == ("update_state", "result")
    return is_pair and not call.args and code.written(fed.value) == code.written(read.value)


def _arguments(code: Code, call: ast.Call) -> str:
    return ", ".join(code.written(each) for each in (*call.args, *call.keywords))


def _loss_of(place: Place, metric: str, given: ast.Call) -> str:
    """What a metric computes of a batch that it is given, as code; empty if its class is not known, or has no loss."""
    made = [value.value for _, value in _values_of([(each, each.tree) for each in _codes(place)], metric)]
    if len(made) != 1 or not isinstance(made[0], ast.Call):
        return ""
    of_class, kind = made[0].func, name_of(made[0].func)
    if kind == "Mean":
        is_weighted = len(given.args) != 1 or bool(given.keywords)
        return "" if place.library is None or is_weighted else place.library("mean", place.code.written(given.args[0]))
    if kind not in _LOSSES or not isinstance(of_class, ast.Attribute) or name_of(of_class.value) != "metrics":
        return ""
    losses = f"{ast.unparse(of_class.value).removesuffix('metrics')}losses"
    options = ", ".join(ast.unparse(each) for each in made[0].keywords if each.arg not in ("name", "dtype"))
    return f"{losses}.{_LOSSES[kind]}({options})({_arguments(place.code, given)})" if not made[0].args else ""


def _codes(place: Place) -> tuple[Code, ...]:
    return place.program.of_file(place.source.file)


def compiled_later(group: Group) -> Iterator[Candidate]:
    """Leaves a function that was compiled while the model was built to the step that calls it."""
    place = place_of_group(group) if group.op is not None and group.op.api == COMPILED_EARLY else None
    if place is None or place.statement is None:
        return
    for function in place.code.around(place.statement):
        marks = getattr(function, "decorator_list", [])
        named = [each for each in marks if name_of(each.func if isinstance(each, ast.Call) else each) == "function"]
        if len(named) != 1:
            continue
        start, end = place.code.span(named[0])
        end += len(place.code.text[end:]) - len(place.code.text[end:].lstrip())
        draft = place.draft().replace_between(start - 1, end, "")
        yield from candidates("A step that is not compiled itself becomes slower.", draft.edit())
        return


def computed_in_the_step(group: Group) -> Iterator[Candidate]:
    """Computes a value where it is used, instead of once before the step."""
    op = group.op
    if op is None or op.type != SNAPSHOT or op.api == COMPILED_EARLY:
        return
    place = place_of_group(group)
    statement = place.statement if place is not None else None
    if place is None or statement is None:
        return
    code = place.code
    written_here = [each for each in ast.walk(statement) if isinstance(each, ast.Lambda)]
    anchor = place.node if place.node is not None else written_here[0] if len(written_here) == 1 else statement
    function = next((each for each in (anchor, *code.around(anchor)) if isinstance(each, FUNCTIONS)), None)
    variables = {name.rpartition("/")[2].partition(":")[0] for name in group.names}
    bound = {each.bound_to for name in group.names if (each := _defined(group, name)) is not None and each.bound_to}
    known = variables | bound | {each.rpartition(".")[2] for each in bound}
    for node in ast.walk(function) if function is not None else ():
        if not isinstance(node, (ast.Name, ast.Attribute)) or isinstance(node.ctx, ast.Store):
            continue
        given = _given_once(place, code.written(node), function) if function is not None else None
        if given is None:
            continue
        home, value = given
        reads = {home.written(each) for each in ast.walk(value) if isinstance(each, (ast.Name, ast.Attribute))}
        if reads.isdisjoint(known):
            continue
        if function is not None:
            edit = _computed_in(code, function, node, (home, value), tensorflow_of(place))
            yield from candidates(_EVERY_STEP, edit)
        return
    yield from candidates("The object is now created anew in every step.", _made_inside(place, known))


def computed_by_each_call(group: Group) -> Iterator[Candidate]:
    """Computes a value in every call instead of only in the first, `if self.kept is None`."""
    for number in group.variables:
        variable = group.trace.variables[number]
        for code, guard, _ in remembered(program_of(group.trace), variable.written or variable.name, ()):
            yield from candidates(_EVERY_STEP, dissolved(code, guard))
            return


def _kept_as_attributes(draft: Draft, home: Code, value: ast.expr) -> dict[str, str]:
    """Lets a method keep its own names that a value is computed with, as attributes, and returns their new names. Each
    of them must have one value, and no attribute its name."""
    method = home.function(value)
    owner = home.parent(method) if method is not None else None
    if method is None or home is not draft.code or not isinstance(owner, ast.ClassDef):
        return {}
    taken = {each.attr for each in ast.walk(owner) if isinstance(each, ast.Attribute)}
    kept = {}
    for name in dict.fromkeys(each.id for each in ast.walk(value) if isinstance(each, ast.Name)):
        made = [home.parent(each) for each in uses_of(method, name) if isinstance(each.ctx, ast.Store)]
        if len(made) == 1 and isinstance(made[0], ast.Assign) and name not in taken:
            draft.insert_after(made[0], f"self.{name} = {name}")
            kept[name] = f"self.{name}"
    return kept


_EVERY_STEP = "The tensor is now computed in every step."


def _computed_in(
    code: Code, function: ast.AST, node: ast.expr, given: tuple[Code, ast.expr], tensorflow: str | None
) -> Edit | None:
    """The value of a name in a function, with TensorFlow, in the place of the name."""
    home, value = given
    draft = Draft(code)
    kept = _kept_as_attributes(draft, home, value)
    writer = Inside(tensorflow or "")
    attributes = {name: ast.parse(attribute, mode="eval").body for name, attribute in kept.items()}
    inside = Filled(attributes).visit(writer.visit(copy.deepcopy(value)))
    if writer.stuck or (writer.changed and not tensorflow):
        return None
    text = home.operand(value) if isinstance(value, (ast.BinOp, ast.UnaryOp)) else home.written(value)
    if writer.changed or kept:
        text = ast.unparse(inside)
        text = text if isinstance(inside, ast.Call) else in_place_of(code, node, text)
    for use in ast.walk(function):
        if isinstance(use, type(node)) and code.written(use) == code.written(node):
            draft.replace(use, text)
    return draft.edit()


def computed_where_it_is_read(group: Group) -> Iterator[Candidate]:
    """The same for a value that only the user's code shows: the step contains neither the variable nor a tensor that is
    known to be computed from it."""
    found = {kept_in_step(group.suspect, each) for each in group.variables} if group.op is None else set()
    program, read = program_of(group.trace), found.pop() if len(found) == 1 else None
    if read is None:
        return
    kept, line = read
    code, home = program.at(kept.file, line), program.at(kept.file, kept.line)
    made = home.statement_at(kept.line) if home is not None else None
    if code is None or home is None or not isinstance(made, ast.Assign):
        return
    stores = [node for node in ast.walk(home.tree) if isinstance(getattr(node, "ctx", None), ast.Store)]
    if sum(home.written(node) == kept.name for node in stores) != 1:
        return
    bound = {defined.bound_to for name in group.names if (defined := _defined(group, name)) is not None}
    reads = [node for node in code.parts_at(line) if isinstance(node, ast.expr) and code.written(node) == kept.name]
    function = code.callable(reads[0]) if reads else None
    if function is None or not bound <= _reads(home, made.value):
        return
    tensorflow = next((name for name, of in program.modules(kept.file).items() if of == "tensorflow"), None)
    yield from candidates(_EVERY_STEP, _computed_in(code, function, reads[0], (home, made.value), tensorflow))


def _made_inside(place: Place, known: AbstractSet[str]) -> Edit | None:
    """Creates an object that depends on the variables, such as a distribution, in the only function that uses it
    instead of outside of the step."""
    codes = place.program.of_file(place.source.file)
    made = [
        (code, node, node.targets[0].id)
        for code in codes
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        if not isinstance(node.value, (ast.Name, ast.Attribute, ast.Constant))
        if not _makes_a_variable(node.value) and not known.isdisjoint(_reads(code, node.value))
    ]
    found = []
    for code, node, name in made:
        home = code.function(node)
        inside = set(ast.walk(home)) if home is not None else None
        users = [
            (other, function)
            for other in codes
            for function in ast.walk(other.tree)
            if isinstance(function, ast.FunctionDef) and function is not home
            if (inside is None or function in inside) and name in _reads(other, function)
            if other.function(function) is home
        ]
        if len(users) == 1 and users[0][1].body:
            found.append((node, *users[0]))
    if len(found) != 1:
        return None
    node, other, function = found[0]
    body = function.body
    has_docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1
    first = body[1] if has_docstring else body[0]
    return Draft(other).insert_before(first, ast.unparse(node)).edit() if other.starts_a_line(first) else None


def _reads(code: Code, node: ast.AST) -> set[str]:
    parts = (each for each in ast.walk(node) if isinstance(each, (ast.Name, ast.Attribute)))
    return {code.written(each) for each in parts if isinstance(each.ctx, ast.Load)}


def _makes_a_variable(node: ast.AST) -> bool:
    return bool(calls_within(node, *MAKERS))


def _given_once(place: Place, name: str, function: ast.AST) -> tuple[Code, ast.expr] | None:
    """The only value that is assigned to a name outside of functions, or to an attribute, first of all in the same
    class; and its passage."""
    around = place.code.owner(function)
    trees: list[tuple[Code, ast.AST]] = [(each, each.tree) for each in _codes(place)]
    own = list(_values_of([(place.code, around)], name)) if around is not None and name.startswith("self.") else []
    found = own or list(_values_of(trees, name))
    inside = set(ast.walk(function))
    if len(found) != 1 or found[0][1] in inside or isinstance(found[0][1].value, ast.Constant):
        return None
    return found[0][0], found[0][1].value


def _values_of(trees: Iterable[tuple[Code, ast.AST]], name: str) -> Iterator[tuple[Code, ast.Assign]]:
    for code, tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and any(code.written(each) == name for each in node.targets):
                yield code, node


def not_all_zeros(group: Group) -> Iterator[Candidate]:
    """Initializes factors with small random numbers instead of zeros: each zero factor keeps the other at zero."""
    cost = "The output no longer starts at exactly zero."
    if group.verdict.severity != "error":
        return
    program, trace, measured = _program(group), group.trace, group.suspect.measured
    involved = dict.fromkeys((*group.variables, *sorted(zero_factors(group.suspect))))
    names = [trace.variables[each].name for each in involved if began_at_zero(measured, each)]
    drafts: dict[Code, Draft] = {}
    makers = [definition_of_variable(program, name) or shared_definition(program, name, names) for name in names]
    for made in dict.fromkeys(filter(None, makers)):
        if (changed := _random_value(made)) is not None:
            drafts.setdefault(made.code, Draft(made.code)).replace(*changed)
    for owner in dict.fromkeys(part for name in names for part in name.split("/")[:-1]):
        layer = definition_of_layer(program, trace, owner)
        for item in layer.call.keywords if layer is not None else ():
            if item.arg in _INITIALIZERS and _is_zeros(item.value) and layer is not None:
                drafts.setdefault(layer.code, Draft(layer.code)).replace(item.value, '"glorot_uniform"')
    if len(drafts) == 1:
        yield from candidates(cost, *(draft.edit() for draft in drafts.values()))


_INITIALIZERS = ("kernel_initializer", "embeddings_initializer", "depthwise_initializer", "initializer")


def _random_value(defined: Definition) -> tuple[ast.expr, str] | None:
    """The initializer that creates the zeros, and its replacement."""
    code, call = defined.code, defined.call
    initializer = argument_of(call, -1, "initializer")
    if initializer is not None and _is_zeros(initializer):
        return initializer, '"glorot_uniform"'
    given = argument_of(call, 0, "initial_value")
    if isinstance(given, ast.Call) and name_of(given.func) == "zeros" and given.args:
        module = code.written(given.func).partition(".")[0]
        if module not in ("np", "numpy"):
            return given, f"{module}.random.normal({code.written(given.args[0])}, stddev=0.02)"
    return None


def _is_zeros(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return node.value in ("zeros", "zero")
    called = node.func if isinstance(node, ast.Call) else node
    return name_of(called) in ("Zeros", "zeros_initializer", "zeros")


def _defined(group: Group, name: str) -> Definition | None:
    return definition_of_variable(_program(group), name)


def _program(group: Group) -> tuple[Code, ...]:
    return program_of(group.trace).passages
