"""Fixes of the gradient functions that users write for `tf.custom_gradient`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from math import isclose, isfinite

from tb_gradflow.analyse.evidence.custom_gradients import Flaw, are_swapped, flaws_of
from tb_gradflow.analyse.user_code.candidate import Candidate, candidates
from tb_gradflow.analyse.user_code.code import Code
from tb_gradflow.analyse.user_code.draft import Draft
from tb_gradflow.analyse.user_code.place import Place, place_at
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.record.python import name_of
from tb_gradflow.record.report import Edit
from tb_gradflow.record.schema import GradientCheck

_RIGHT = "The forward values do not change."
_AUTOMATIC = "TensorFlow's own derivative of the forward computation replaces yours."

# A ratio counts as a factor if it is this close to an integer, or to the reciprocal of one.
_NEAR = 1e-2


def right_gradient(group: Group) -> Iterator[Candidate]:
    """Returns the gradient times the upstream gradient, with the other sign or another factor, or in another order;
    otherwise TensorFlow's own derivative."""
    check = next((each for each in group.trace.gradient_checks if each.op == group.culprit), None)
    place = place_at(group, check.source) if check is not None and check.source is not None else None
    function = _function_at(place) if place is not None else None
    if check is None or place is None or function is None:
        return
    flaw = next(flaws_of(check), None)
    if flaw is not None and (change := _change(check, flaw, function)) is not None:
        yield from candidates(_RIGHT, _with_returns(place.code, function, change))
    if flaw is not None and flaw.sample is not None and flaw.sample.automatic is not None:
        yield from candidates(_AUTOMATIC, _without_own(place.code, function))


def _function_at(place: Place) -> ast.FunctionDef | None:
    """The gradient function that begins at a line."""
    line = place.source.line - place.code.passage.line + 1
    found = [node for node in ast.walk(place.code.tree) if isinstance(node, ast.FunctionDef) and node.lineno == line]
    return found[0] if len(found) == 1 and found[0].args.args else None


_Change = Callable[[Code, list[ast.expr]], list[str]]


def _change(check: GradientCheck, flaw: Flaw, function: ast.FunctionDef) -> _Change | None:
    """How to change each returned expression; `None` if the flaw does not show it."""
    if are_swapped(check):
        return lambda code, parts: [code.written(part) for part in reversed(parts)] if len(parts) == 2 else []
    if check.response == "constant":
        arriving = function.args.args[0].arg
        return lambda code, parts: [
            code.written(part) if arriving in code.names(part) else f"{arriving} * {code.operand(part)}"
            for part in parts
        ]
    ratio = flaw.input.ratio
    if not ratio or not isfinite(ratio) or not isfinite(1 / ratio) or len(check.inputs) != 1:
        return None
    if isclose(ratio, -1, rel_tol=_NEAR):
        return lambda code, parts: [f"-{code.operand(part)}" for part in parts]
    if any(isclose(each, round(each), rel_tol=_NEAR) for each in (ratio, 1 / ratio)):
        factor = round(1 / ratio) if abs(ratio) < 1 else 1 / round(ratio)
        return lambda code, parts: [f"{float(factor):g} * {code.operand(part)}" for part in parts]
    return None


def _with_returns(code: Code, function: ast.FunctionDef, change: _Change) -> Edit | None:
    """The function with each of its `return`s changed, except those of nested functions."""
    draft = Draft(code)
    for node in ast.walk(function):
        if not isinstance(node, ast.Return) or node.value is None or code.function(node) is not function:
            continue
        whole = node.value
        parts = list(whole.elts) if isinstance(whole, (ast.Tuple, ast.List)) else [whole]
        if any(isinstance(part, (ast.Starred, ast.Constant)) for part in parts):
            return None
        for part, text in zip(parts, change(code, parts), strict=False):
            draft.replace(part, text)
    return draft.edit()


def _without_own(code: Code, function: ast.FunctionDef) -> Edit | None:
    """The enclosing function without `@tf.custom_gradient`; it then returns only its value."""
    outer = code.function(function)
    if outer is None:
        return None
    marks = [
        each
        for each in outer.decorator_list
        if name_of(each.func if isinstance(each, ast.Call) else each) == "custom_gradient"
    ]
    returned = [node for node in ast.walk(outer) if isinstance(node, ast.Return) and code.function(node) is outer]
    if len(marks) != 1 or len(outer.decorator_list) != 1:
        return None
    draft = Draft(code)
    start, _ = code.span(marks[0])
    begin, _ = code.span(outer)
    draft.replace_between(start - 1, begin, "")
    for node in returned:
        given = node.value
        pair = isinstance(given, ast.Tuple) and len(given.elts) == 2
        if not pair or not isinstance(given, ast.Tuple) or not _is_named(given.elts[1], function.name):
            return None
        draft.replace(given, code.written(given.elts[0]))
    return draft.edit()


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
