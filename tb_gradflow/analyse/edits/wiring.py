"""Fixes for results that are computed but never used, and for shapes that do not fit."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tb_gradflow.analyse.graph.dropped_layer import dropped_layer
from tb_gradflow.analyse.graph.op_sets import passes_gradient, shape_along
from tb_gradflow.analyse.user_code.candidate import Candidate, candidates
from tb_gradflow.analyse.user_code.draft import is_plain
from tb_gradflow.analyse.user_code.place import Place, place_at, place_of_group
from tb_gradflow.analyse.words.names import Group


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
    shape = shape_along(group.trace, learned[0]) if len(learned) == 1 else None
    # With several outputs for one target, it is not the shape that is wrong.
    if shape is None or (len(shape) > 1 and shape[-1] != 1):
        return
    prediction, labels = sides[learned[0].input], sides[1 - learned[0].input]
    draft = place.draft()
    if name := draft.computed_before(prediction, "prediction", "predicted"):
        draft.replace(labels, place.library("reshape", place.code.written(labels), place.library("shape", name)))
        if not is_plain(prediction):
            draft.replace(prediction, name)
        yield from candidates("Each row is compared with its own label.", draft.edit())


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
