"""Fixes that keep the value of a step function and let the gradient pass as if it were not there.

Bengio, Léonard and Courville, "Estimating or propagating gradients through stochastic neurons for conditional
computation", 2013, https://arxiv.org/abs/1308.3432.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tb_gradflow.analyse.evidence.suspects import discrete_part
from tb_gradflow.analyse.user_code.candidate import Candidate, candidates, in_place_of
from tb_gradflow.analyse.user_code.code import FUNCTIONS, Code
from tb_gradflow.analyse.user_code.place import Place, name_of, place_of_group
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.record.report import Edit

_COST = "The forward values do not change; the gradient is that of the identity, not the derivative."
_SMOOTH = "The values are no longer exactly -1 or 1; the gradient is exact."

_DISCRETE = frozenset({"Cast", "Round", "Floor", "Ceil", "Rint", "Identity", "Reshape", "Squeeze", "ExpandDims"})


def through_rounding(group: Group) -> Iterator[Candidate]:
    """`v + stop_gradient(round(v) - v)` instead of `round(v)`; the same for a detour over integers."""
    if arrives(group):
        yield from _around_the_call(group)
    else:
        yield from _around_the_detour(group)


def through_sign(group: Group) -> Iterator[Candidate]:
    place = place_of_group(group)
    yield from _around_the_call(group)
    if place is None or place.call is None or place.library is None or place.subject is None:
        return
    smooth = place.library("tanh", f"{place.code.operand(place.subject)} / 0.1")
    yield from candidates(_SMOOTH, place.draft().replace(place.call, smooth).edit())


def arrives(group: Group) -> bool:
    """Whether the gradient arrives at what the culprit makes, so that nothing else on its path cuts it."""
    suspect = group.suspect
    return suspect.target >= 0 and suspect.topology.gradient(suspect.target).hops[group.culprit] >= 0


def _around_the_call(group: Group) -> Iterator[Candidate]:
    place = place_of_group(group)
    if place is None or place.node is None or place.subject is None or place.library is None:
        return
    if isinstance(place.node, ast.BinOp):
        yield from _around_an_operator(place, place.node)
        return
    if isinstance(place.node, ast.Call):
        yield from candidates(_COST, straight_through(place, place.node, place.subject))


def straight_through(place: Place, rounded: ast.expr, given: ast.expr) -> Edit | None:
    """The edit that writes `v + stop_gradient(rounded - v)` instead of `rounded`, `v` being what is given to it."""
    library, code, draft = place.library, place.code, place.draft()
    if library is None:
        return None
    value = draft.computed_before(given, "value", "soft", "raw")
    if not value:
        free = code.free_name(rounded, "value", "soft", "raw")
        inside = _with(code, rounded, given, free)
        through = f"{free} + {library('stop_gradient', f'{inside} - {free}')}"
        return place.draft().replace(rounded, f"(lambda {free}: {through})({code.written(given)})").edit()
    inside = _with(code, rounded, given, value)
    through = f"{value} + {library('stop_gradient', f'{inside} - {value}')}"
    return draft.replace(rounded, in_place_of(code, rounded, through)).edit()


def _with(code: Code, whole: ast.expr, part: ast.expr, text: str) -> str:
    """An expression with another text for one part of it."""
    (start, end), (first, last) = code.span(whole), code.span(part)
    return code.text[start:first] + text + code.text[last:end]


def _around_an_operator(place: Place, node: ast.BinOp) -> Iterator[Candidate]:
    """`a // b` rounds `a / b` down."""
    if not isinstance(node.op, ast.FloorDiv) or place.library is None:
        return
    left, right = place.code.operand(node.left), place.code.operand(node.right)
    smooth = f"{left} / {right}"
    through = f"{smooth} + {place.library('stop_gradient', f'{left} // {right} - {smooth}')}"
    yield from candidates(_COST, place.draft().replace(node, in_place_of(place.code, node, through)).edit())


def _around_the_detour(group: Group) -> Iterator[Candidate]:
    """A value that is made an integer and then a floating number again, and nothing else in between."""
    part = discrete_part(group.suspect)
    consumers = {use.consumer for use in part.uses}
    kinds = {group.trace.ops[op].type for op in part.ops}
    if len(consumers) != 1 or not kinds <= _DISCRETE:
        return
    back = consumers.pop()
    if group.trace.ops[back].type != "Cast":
        return
    first, last = place_of_group(group), place_of_group(group, back)
    if first is None or last is None or first.subject is None or last.node is None or first.code is not last.code:
        return
    if not _in_one_function(first, last):
        return
    given = first.subject
    if given in ast.walk(last.node):
        yield from candidates(_COST, straight_through(last, last.node, given))
        return
    library, code = last.library, last.code
    statement = first.statement
    if library is None or statement is None:
        return
    draft = last.draft()
    value = draft.computed_before(given, "value", "soft", "raw")
    if not value or _is_given_anew(code, statement, value):
        return
    if value != code.written(given):
        draft.replace(given, value)
    through = f"{value} + {library('stop_gradient', f'{code.written(last.node)} - {value}')}"
    yield from candidates(_COST, draft.replace(last.node, in_place_of(code, last.node, through)).edit())


def _is_given_anew(code: Code, statement: ast.stmt, value: str) -> bool:
    """Whether the statement itself gives the name another value: `x = tf.cast(x, tf.int32)`."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return value in {code.written(each) for each in targets}


def _in_one_function(first: Place, last: Place) -> bool:
    def function(place: Place) -> ast.AST | None:
        around = place.code.around(place.node) if place.node is not None else ()
        return next((each for each in around if isinstance(each, FUNCTIONS)), None)

    return function(first) is function(last)


def is_cast(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and name_of(node.func) in ("cast", "astype", "to_float", "saturate_cast")
