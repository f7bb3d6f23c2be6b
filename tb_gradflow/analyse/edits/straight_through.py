"""Fixes that keep the value of a step function and pass the gradient as if it were the identity.

Bengio, Léonard and Courville, "Estimating or propagating gradients through stochastic neurons for conditional
computation", 2013, https://arxiv.org/abs/1308.3432.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tb_gradflow.analyse.evidence.discrete import REMAINDERS, is_at_limits_of_logarithm
from tb_gradflow.analyse.evidence.stops import takes_back_its_value
from tb_gradflow.analyse.evidence.suspects import Discrete, discrete_part
from tb_gradflow.analyse.graph.op_sets import is_float
from tb_gradflow.analyse.user_code.candidate import Candidate, candidates, in_place_of
from tb_gradflow.analyse.user_code.code import Code
from tb_gradflow.analyse.user_code.draft import Draft
from tb_gradflow.analyse.user_code.place import Place, place_of_group
from tb_gradflow.analyse.words.names import Group
from tb_gradflow.analyse.words.soft import is_given_integers
from tb_gradflow.record.python import name_of
from tb_gradflow.record.report import Edit

_COST = "The forward values do not change; the gradient is that of the identity, not the derivative."
_SMOOTH = "The values are no longer exactly -1 or 1; the gradient is exact."

_DISCRETE = frozenset(
    {"Cast", "Round", "Floor", "Ceil", "Rint", "Identity", "Reshape", "Squeeze", "ExpandDims", "AsString"}
)


def through_rounding(group: Group) -> Iterator[Candidate]:
    """`v + stop_gradient(round(v) - v)` instead of `round(v)`; the same for a detour through integers. Nothing passes
    the gradient to integers."""
    of_numbers = any(is_float(group.trace.variables[number].dtype) for number in group.variables)
    if is_given_integers(group) or not of_numbers or is_at_limits_of_logarithm(group.suspect, group.culprit):
        return
    if arrives(group):
        yield from _around_the_call(group)
    else:
        yield from through_detour(group)


def unrounded(group: Group) -> Iterator[Candidate]:
    """`v` instead of `round(v)` in front of a cross-entropy, which clips the rounded values: no gradient would pass
    there either."""
    place = place_of_group(group)
    if place is None or place.call is None or place.subject is None:
        return
    if is_at_limits_of_logarithm(group.suspect, group.culprit):
        edit = place.draft().replace(place.call, place.code.operand(place.subject)).edit()
        yield from candidates("The values are no longer whole numbers: round what is predicted, or in a metric.", edit)


def through_detour(group: Group) -> Iterator[Candidate]:
    """The same for a value that is converted to integers or text, and then back to floating point."""
    yield from _around_the_detour(group)
    yield from _kept_floating(group)


def through_sign(group: Group) -> Iterator[Candidate]:
    place = place_of_group(group)
    yield from _around_the_call(group)
    if place is None or place.call is None or place.library is None or place.subject is None:
        return
    smooth = place.library("tanh", f"{place.code.operand(place.subject)} / 0.1")
    yield from candidates(_SMOOTH, place.draft().replace(place.call, smooth).edit())


def through_difference(group: Group) -> Iterator[Candidate]:
    """`x + stop_gradient(q - x)` instead of `x + stop_gradient(q) - x`, whose gradients for `x` cancel."""
    place = place_of_group(group)
    if place is None or place.node is None or place.library is None:
        return
    if not takes_back_its_value(group.suspect.topology, group.culprit):
        return
    code, added, taken = place.code, *_added_and_taken(place.node)
    same = [each for each in added if taken and code.written(each) == code.written(taken[0])]
    if len(added) != 2 or len(taken) != 1 or len(same) != 1:
        return
    [given] = [each for each in added if each is not same[0]]
    if isinstance(given, ast.Call) and name_of(given.func) == "stop_gradient" and len(given.args) == 1:
        given = given.args[0]
    value = code.operand(same[0])
    through = f"{value} + {place.library('stop_gradient', f'{code.operand(given)} - {value}')}"
    yield from candidates(_COST, place.draft().replace(place.node, in_place_of(code, place.node, through)).edit())


def _added_and_taken(node: ast.expr) -> tuple[list[ast.expr], list[ast.expr]]:
    """The terms of a sum, and those that it subtracts."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add | ast.Sub):
        return [node], []
    (added, taken), (others, others_taken) = _added_and_taken(node.left), _added_and_taken(node.right)
    if isinstance(node.op, ast.Sub):
        others, others_taken = others_taken, others
    return [*added, *others], [*taken, *others_taken]


def arrives(group: Group) -> bool:
    """Whether the gradient arrives at the culprit's output, so that nothing else cuts its path."""
    suspect = group.suspect
    return suspect.target >= 0 and suspect.topology.gradient(suspect.target).hops[group.culprit] >= 0


def _around_the_call(group: Group) -> Iterator[Candidate]:
    place = place_of_group(group)
    if place is None or place.node is None or place.subject is None or place.library is None:
        return
    sides = _quotient(place.node)
    if group.op is not None and group.op.type in REMAINDERS:
        kept = place.library("stop_gradient", place.code.written(place.node))
        yield from candidates(_COST, place.draft().replace(place.node, kept).edit())
        return
    if sides is not None:
        yield from candidates(_COST, _around_a_quotient(place, place.node, *sides))
        return
    if isinstance(place.node, ast.Call):
        others = alike(group, place)
        if others:
            yield from candidates(_COST, _each_straight_through([place, *others]))
        yield from candidates(_COST, straight_through(place, place.node, place.subject))


def alike(group: Group, place: Place) -> list[Place]:
    """Other calls of the same TensorFlow function in the user's function that cut off the same variables: if only the
    first were fixed, the others would still cut the path."""
    op, topology = group.op, group.suspect.topology
    if op is None or place.node is None:
        return []
    readers = {reader for variable in group.variables for reader in topology.readers[variable]}
    influence = topology.influence(group.suspect.target).hops
    found: dict[ast.expr, Place] = {}
    for index, each in enumerate(group.trace.ops):
        if index == group.culprit or (each.type, each.api) != (op.type, op.api) or influence[index] < 0:
            continue
        if readers.isdisjoint(topology.made_by(index)):
            continue
        other = place_of_group(group, index)
        if other is None or other.node is None or other.code is not place.code or other.node is place.node:
            continue
        if place.code.function(other.node) is place.code.function(place.node):
            found.setdefault(other.node, other)
    return list(found.values())


def _each_straight_through(places: list[Place]) -> Edit | None:
    draft = places[0].draft()
    for each in places:
        if not isinstance(each.node, ast.Call) or each.subject is None or not _put_through(draft, each, each.subject):
            return None
    return draft.edit()


def straight_through(place: Place, rounded: ast.expr, given: ast.expr) -> Edit | None:
    """The edit that replaces `rounded` with `v + stop_gradient(rounded - v)`, where `v` is the input of the
    rounding."""
    draft = place.draft()
    return draft.edit() if _put_through(draft, place, given, rounded) else None


def _put_through(draft: Draft, place: Place, given: ast.expr, rounded: ast.expr | None = None) -> bool:
    library, code = place.library, place.code
    rounded = rounded if rounded is not None else place.node
    if library is None or rounded is None:
        return False
    value = draft.computed_before(given, "value", "soft", "raw")
    name = value or draft.free_name(rounded, "value", "soft", "raw")
    inside = _with(code, rounded, given, name)
    through = f"{name} + {library('stop_gradient', f'{inside} - {name}')}"
    if value:
        draft.replace(rounded, in_place_of(code, rounded, through))
    else:
        draft.replace(rounded, f"(lambda {name}: {through})({code.written(given)})")
    return True


def _with(code: Code, whole: ast.expr, part: ast.expr, text: str) -> str:
    """The text of an expression with one part of it replaced."""
    (start, end), (first, last) = code.span(whole), code.span(part)
    return code.text[start:first] + text + code.text[last:end]


def _quotient(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The operands of `a // b`, also written `tf.math.floordiv(a, b)`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
        return node.left, node.right
    if isinstance(node, ast.Call) and name_of(node.func) in ("floordiv", "floor_divide") and len(node.args) == 2:
        return node.args[0], node.args[1]
    return None


def _around_a_quotient(place: Place, node: ast.expr, left: ast.expr, right: ast.expr) -> Edit | None:
    """`a // b` rounds `a / b` down."""
    code, library = place.code, place.library
    assert library is not None
    smooth = f"{code.operand(left)} / {code.operand(right)}"
    through = f"{smooth} + {library('stop_gradient', f'{code.written(node)} - {smooth}')}"
    return place.draft().replace(node, in_place_of(code, node, through)).edit()


def _around_the_detour(group: Group) -> Iterator[Candidate]:
    """A value that is cast to integers and back to floating point, with nothing in between."""
    part = discrete_part(group.suspect)
    consumers = {use.consumer for use in part.uses}
    kinds = {group.trace.ops[op].type for op in part.ops}
    if len(consumers) != 1 or not kinds <= _DISCRETE:
        return
    back = consumers.pop()
    if group.trace.ops[back].type not in ("Cast", "StringToNumber"):
        return
    first, last = place_of_group(group), place_of_group(group, back)
    if first is None or last is None or first.subject is None or last.node is None or first.code is not last.code:
        return
    whole: ast.expr | None = last.node
    if first.node is not None and first.node is whole:
        # The line does not show which of its casts is which. Nothing but the one around it casts back.
        outer = last.code.parent(first.node)
        whole = outer if isinstance(outer, ast.Call) and argument_of_cast(outer) is whole else None
    if whole is None or not _in_one_function(first, last) or not _only_converts(whole):
        return
    given = first.subject
    if given in ast.walk(whole):
        yield from candidates(_COST, straight_through(last, whole, given))
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
    through = f"{value} + {library('stop_gradient', f'{code.written(whole)} - {value}')}"
    yield from candidates(_COST, draft.replace(whole, in_place_of(code, whole, through)).edit())


def _kept_floating(group: Group) -> Iterator[Candidate]:
    """For a cast to integers that another function casts back: returns floating-point numbers of the same value."""
    part, place = discrete_part(group.suspect), place_of_group(group)
    kinds = {group.trace.ops[use.consumer].type for use in part.uses}
    if not part.uses or kinds != {"Cast"} or not _is_arithmetic(group, part):
        return
    if place is None or place.node is None or place.library is None or not is_cast(place.node):
        return
    given = place.subject
    if given is None or given is not argument_of_cast(place.node):
        return
    draft, library = place.draft(), place.library
    value = draft.computed_before(given, "value", "soft", "raw")
    if not value:
        return
    whole = library("cast", _with(place.code, place.node, given, value), f"{value}.dtype")
    through = f"{value} + {library('stop_gradient', f'{whole} - {value}')}"
    yield from candidates(_FLOATING, draft.replace(place.node, in_place_of(place.code, place.node, through)).edit())


_FLOATING = (
    "The result is a floating-point number with the same value: code that needs an integer has to cast it. The "
    "gradient is that of the identity, not the derivative."
)


def _is_arithmetic(group: Group, part: Discrete) -> bool:
    """Whether the same computation can be done in floating point: each operand is a result of the same line that casts,
    or is computed from such results."""
    ops = group.trace.ops
    for op in part.ops:
        if ops[op].type in _DISCRETE:
            continue
        if ops[op].type not in _ARITHMETIC:
            return False
        operands = [each.op for each in ops[op].inputs[: 1 if ops[op].type == "Sum" else 2]]
        if any(each not in part.ops and ops[each].source != ops[group.culprit].source for each in operands):
            return False
    return True


# Whole numbers in floating point give the same result, up to 2^24 in float32.
_ARITHMETIC = frozenset({"Mul", "AddV2", "Sub", "Neg", "Sum", "MatMul"})


def argument_of_cast(node: ast.expr) -> ast.expr | None:
    return node.args[0] if isinstance(node, ast.Call) and node.args else None


def _is_given_anew(code: Code, statement: ast.stmt, value: str) -> bool:
    """Whether the statement reassigns the name: `x = tf.cast(x, tf.int32)`."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return value in {code.written(each) for each in targets}


def _in_one_function(first: Place, last: Place) -> bool:
    def function(place: Place) -> ast.AST | None:
        return place.code.callable(place.node) if place.node is not None else None

    return function(first) is function(last)


def _only_converts(node: ast.expr) -> bool:
    """Whether the call returns the numbers that it is given, in another dtype. Many functions cast their arguments
    before they compute something else: the value of `tf.image.ssim` is not that of its images.
    """
    return is_cast(node) or (isinstance(node, ast.Call) and name_of(node.func) in ("convert_image_dtype", "to_number"))


def is_cast(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and name_of(node.func) in ("cast", "astype", "to_float", "saturate_cast")
