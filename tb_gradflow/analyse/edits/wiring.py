"""Fixes for results that are computed but never used, and for shapes that do not fit."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tb_gradflow.analyse.graph.dropped_layer import dropped_layer
from tb_gradflow.analyse.graph.op_sets import is_float, passes_gradient, shape_along
from tb_gradflow.analyse.user_code.candidate import Candidate, candidates
from tb_gradflow.analyse.user_code.code import Code
from tb_gradflow.analyse.user_code.draft import is_plain
from tb_gradflow.analyse.user_code.place import Place, place_at, place_of_group
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.record.python import is_number, names_in, reads_of, variables_of
from tb_gradflow.record.report import Edit


def result_kept(group: Group) -> Iterator[Candidate]:
    """`x = layer(x)` instead of `layer(x)`, whose result is dropped; `array = array.write(place, x)` for a
    `tf.TensorArray`."""
    topology, variable = group.suspect.topology, group.suspect.state.variable
    layer = dropped_layer(topology, group.culprit, group.suspect.target)
    called = [place_at(group, layer.source)] if layer is not None and layer.source is not None else []
    made = (place_of_group(group, op) for op in (group.culprit, *topology.readers[variable]) if op >= 0)
    for place in (*called, *made):
        statement = place.statement if place is not None else None
        if place is None or not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            continue
        call = statement.value
        method = call.func if isinstance(call.func, ast.Attribute) and call.func.attr in _OF_ARRAYS else None
        # `tf.split` is a function of a module.
        of_array = method is not None and ast.unparse(method.value) not in place.modules
        given = method.value if method is not None and of_array else call.args[0] if call.args else None
        if isinstance(given, ast.Name) and _is_read_later(place, statement, given.id):
            written = f"{given.id} = {place.code.written(call)}"
            cost = "The code that follows uses the result."
            yield from candidates(cost, place.draft().replace(statement, written).edit())
            return


def in_one_shape(group: Group) -> Iterator[Candidate]:
    """Gives labels the shape of the predictions, where the user's line shows the two sides."""
    place = place_of_group(group)
    sides = _sides(place.node) if place is not None else ()
    op = group.op
    if place is None or place.library is None or op is None or len(sides) != 2:
        return
    from_variables = group.suspect.topology.of_variables
    learned = [edge for edge in op.inputs if edge.op >= 0 and passes_gradient(edge) and from_variables[edge.op]]
    cost = "Each row is compared with its own label."
    if len(learned) == 2:  # the learned weight of each row, and what is predicted for it
        learned = [edge for edge in learned if group.trace.ops[edge.op].reads is None]
        cost = "Each row counts with its own weight."
    shape = shape_along(group.trace, learned[0]) if len(learned) == 1 else None
    result = op.outputs[0].shape if op.outputs else None
    # With several outputs for one target, it is not the shape that is wrong.
    if shape is None or result is None or (len(shape) == len(result) and shape[1] != 1):
        return
    prediction, labels = sides[learned[0].input], sides[1 - learned[0].input]
    draft = place.draft()
    if name := draft.computed_before(prediction, "prediction", "predicted"):
        draft.replace(labels, place.library("reshape", place.code.written(labels), place.library("shape", name)))
        if not is_plain(prediction):
            draft.replace(prediction, name)
        yield from candidates(cost, draft.edit())


def _sides(node: ast.expr | None) -> tuple[ast.expr, ...]:
    if isinstance(node, ast.BinOp):
        return node.left, node.right
    return tuple(node.args) if isinstance(node, ast.Call) and not node.keywords else ()


_OF_ARRAYS = ("write", "scatter", "unstack", "split")
"""Methods of a `tf.TensorArray` that return the array with the values in it."""


def _is_read_later(place: Place, statement: ast.stmt, name: str) -> bool:
    function = place.code.function(statement)
    later = [node for node in ast.walk(function or place.code.tree) if getattr(node, "lineno", 0) > statement.lineno]
    return any(isinstance(node, ast.Name) and node.id == name for node in later)


def term_added(group: Group) -> Iterator[Candidate]:
    """Adds a number that is computed and not used, such as a term of the loss, to the loss of the same function."""
    place = _dropped_at(group)
    named = _named_by(place) if place is not None else None
    outputs = group.op.outputs if group.op is not None else ()
    if place is None or named is None or len(outputs) != 1 or outputs[0].shape != () or not is_float(outputs[0].dtype):
        return
    statement, name = named
    cost = f"The loss contains `{name}`, with a weight of one."
    requested = group.trace.targets[group.suspect.target].source if group.suspect.target >= 0 else None
    request = place_at(group, requested) if requested is not None else None
    anchor = request.statement if request is not None and request.code is place.code else None
    if anchor is not None and place.code.function(anchor) is place.code.function(statement):
        yield from candidates(cost, _in_the_sum(group, place, statement, name))
    else:
        yield from candidates(cost, _in_what_is_returned(group, place, statement, name))


def accumulated(group: Group) -> Iterator[Candidate]:
    """Adds up what each pass of a loop computes, if each overwrites a number that was zero before the loop."""
    place = _dropped_at(group)
    named = _named_by(place) if place is not None else None
    if place is None or named is None:
        return
    (statement, name), code = named, place.code
    loop = code.parent(statement)
    if not isinstance(loop, ast.For) or statement not in loop.body or reads_of(loop, name):
        return
    block = code.block(loop)
    before = [each for each in block[: block.index(loop)] if isinstance(each, ast.Assign) and _sets(code, each, name)]
    if before and is_number(before[-1].value) and ast.literal_eval(before[-1].value) == 0:
        added = f"{name} += {code.written(statement.value)}"
        yield from candidates(_SUM, place.draft().replace(statement, added).edit())


_SUM = "The result is the sum over all passes of the loop, instead of what the last one computes."


def _dropped_at(group: Group) -> Place | None:
    """Where the path from variables ends, if it should not end there."""
    is_meant = group.verdict.severity == "info" or any(group.trace.variables[each].computed for each in group.variables)
    return None if is_meant else place_of_group(group)


def _named_by(place: Place) -> tuple[ast.Assign, str] | None:
    """The assignment at a place, if it gives its value one name."""
    statement = place.statement
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    return (statement, target.id) if isinstance(statement, ast.Assign) and isinstance(target, ast.Name) else None


def _in_the_sum(group: Group, place: Place, statement: ast.Assign, name: str) -> Edit | None:
    """The term in the last statement that sets the target of the gradient, if that comes later in the same block."""
    loss, code = group.trace.targets[group.suspect.target].name, place.code
    listed = code.block(statement)
    later = [
        each
        for each in listed[listed.index(statement) + 1 :]
        if isinstance(each, ast.Assign) and [code.written(target) for target in each.targets] == [loss]
    ]
    if later:
        return _with_term(place, later[-1].value, name)
    earlier = [each for each in listed[: listed.index(statement)] if _sets(code, each, loss)]
    return place.draft().insert_after(statement, f"{loss} = {loss} + {name}").edit() if earlier else None


def _sets(code: Code, statement: ast.stmt, name: str) -> bool:
    return isinstance(statement, ast.Assign) and name in map(code.written, statement.targets)


def _in_what_is_returned(group: Group, place: Place, statement: ast.Assign, name: str) -> Edit | None:
    """The term in the only number that the function returns, on whose path to the loss it is."""
    code, function = place.code, place.code.function(statement)
    if function is None or statement not in function.body:
        return None
    returns = [each for each in ast.walk(function) if isinstance(each, ast.Return)]
    value = returns[0].value if len(returns) == 1 and returns[0] in function.body else None
    if not isinstance(value, (ast.Name, ast.Call, ast.BinOp)):
        return None
    made = [each for each in function.body if isinstance(value, ast.Name) and _sets(code, each, value.id)]
    shapes = _shapes_made_at(group, place, made[-1] if made else returns[0], reaching=True)
    return _with_term(place, value, name) if shapes and shapes[-1] == () else None


def _with_term(place: Place, value: ast.expr, name: str) -> Edit | None:
    is_sum = isinstance(value, (ast.BinOp, ast.UnaryOp))
    written = place.code.written(value) if is_sum else place.code.operand(value)
    return place.draft().replace(value, f"{written} + {name}").edit()


def _shapes_made_at(
    group: Group, place: Place, statement: ast.stmt, *, reaching: bool = False
) -> list[tuple[int, ...] | None]:
    """The shapes of what the ops of a statement return, in their order; with `reaching`, of those on the path to the
    loss."""
    first = statement.lineno + place.code.passage.line - 1
    last = (statement.end_lineno or statement.lineno) + place.code.passage.line - 1
    hops = group.suspect.topology.influence(group.suspect.target).hops if group.suspect.target >= 0 else ()
    sources = group.trace.sources
    return [
        op.outputs[0].shape
        for number, op in enumerate(group.trace.ops)
        if op.source is not None
        and op.outputs
        and sources[op.source].file == place.source.file
        and first <= sources[op.source].line <= last
        and (not reaching or (bool(hops) and hops[number] >= 0))
    ]


def result_read(group: Group) -> Iterator[Candidate]:
    """`head(up)` instead of `head(skip)`, if `up` is computed from `skip`, has its shape, and is never read."""
    place = _dropped_at(group)
    named = _named_by(place) if place is not None else None
    function = place.code.function(named[0]) if place is not None and named is not None else None
    if place is None or named is None or function is None or named[0] not in function.body:
        return
    statement, name = named
    shapes = _shapes_made_at(group, place, statement)
    if not shapes or not shapes[-1] or reads_of(function, name):
        return
    here = function.body.index(statement)
    behind = {
        each: before[-1]
        for each in _read_for(function.body[: here + 1], statement)
        if (before := [made for made in function.body[:here] if _sets(place.code, made, each)])
    }
    alike = {each for each, made in behind.items() if _shapes_made_at(group, place, made)[-1:] == shapes[-1:]}
    for later in function.body[here + 1 :]:
        found = reads_of(later, *alike)
        if found and _shapes_made_at(group, place, later, reaching=True):
            if len(found) == 1 and isinstance(place.code.parent(found[0]), ast.Call):
                cost = f"The code that follows computes with `{name}` instead of `{found[0].id}`."
                yield from candidates(cost, place.draft().replace(found[0], name).edit())
            return


def _read_for(body: list[ast.stmt], statement: ast.Assign) -> set[str]:
    """The names from which a statement computes its value, directly or not."""
    names = names_in(statement.value)
    for each in reversed(body):
        if isinstance(each, ast.Assign) and not names.isdisjoint(variables_of(each)):
            names |= names_in(each.value)
    return names
