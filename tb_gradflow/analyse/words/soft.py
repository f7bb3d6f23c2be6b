"""Words for comparisons: a smooth stand-in for one, and what is then done with it in the place of a choice."""

from __future__ import annotations

import ast

from tb_gradflow.analyse.evidence.suspects import discrete_part
from tb_gradflow.analyse.graph.op_sets import LOOPS, is_float
from tb_gradflow.analyse.words.code import (
    Call,
    assigned_by,
    bracketed,
    call_around,
    call_on,
    conditions_joined,
    innermost_call,
    without_cast,
)
from tb_gradflow.analyse.words.fields import SIZE, fields
from tb_gradflow.analyse.words.names import Group, Text, Writer, call_of, called, namespace, short, source_of
from tb_gradflow.analyse.words.shares import CHOICES, who_gets_it

_LESS = ("Less", "LessEqual")
_EQUAL = ("Equal", "NotEqual")
_BRANCHES = ("If", "StatelessIf")

# How wide a soft step is: of values about one, and of positions, which are one apart.
_NARROW, _WIDE = 0.1, 0.5


def comparison(group: Group) -> Text:
    names = fields(group)
    against = " with positions" if _is_sequence_mask(group) else ""
    what = names["them"] if len(group.variables) == 1 else "what comes from them"
    message = SIZE + f"{{op}} only compares {what}{against}, and a comparison has no derivative."
    step = soft_step(group)
    fix = f"Use a soft step, for example `{step}`."
    if around := _cast_around(group):
        kept = f"; or `soft + {namespace(group)}.stop_gradient({around} - soft)`, which keeps its value"
        equal = group.op is not None and group.op.type in _EQUAL
        fix = f"In the place of `{around}` use a soft step, `soft = {step}`{'' if equal else kept}."
    if (both := _both(group)) is not None:
        fix = f"In the place of `{both[0]}` use the product of soft steps, `{both[1]}`."
    if (chosen := _chosen(group)) is not None:
        whole, yes, no = chosen
        finite = "; both sides have to be finite everywhere" if _is_computed((yes, no)) else ""
        fix = f"In the place of `{whole}` choose softly: `gate = {step}`, then `{_blend(yes, no)}`{finite}."
        message += who_gets_it(group, _choices(group)[0]).replace("{", "{{").replace("}", "}}")
    return Text(message.format_map(names), fix)


def predicate(group: Group) -> Text:
    names, ends = fields(group), _ends_a_loop(group)
    does = "ends a loop" if ends else "chooses a branch"
    message = SIZE + "{op} compares {them}, and the result only " + does + ", which has no derivative."
    blend, gate = _blended_branches(group), f"`gate = {soft_step(group)}`"
    fix = f"Blend both branches: {gate}, then `{blend}`."
    if not blend:
        fix = f"Compute both branches and blend what they give: {gate}, then `gate` parts of what comes of the branch "
        fix += "where the comparison holds, and `1 - gate` parts of the other."
    if ends:
        fix = (
            f"Make a fixed number of rounds, and blend in each: `gate = {soft_step(group)}`, then `gate * new + (1 - "
            "gate) * old`; or let it into what a round computes, for an end of time as its step: `dt = end / steps`."
        )
    return Text(message.format_map(names), fix)


def _ends_a_loop(group: Group) -> bool:
    uses = discrete_part(group.suspect).uses
    return bool(uses) and all(group.suspect.type_of(use.consumer) in LOOPS | {"LoopCond"} for use in uses)


def soft_step(group: Group) -> str:
    """A smooth stand-in for the comparison on the user's line, with their names in it."""
    lib, call = namespace(group), call_of(group)
    if _is_sequence_mask(group):
        return _soft_mask(call, short(group))
    left, right = ("x", short(group) if len(group.variables) == 1 else "threshold")
    width = _NARROW
    if call and len(call.arguments) > 1:
        left, right = (bracketed(without_cast(side)) for side in call.arguments[:2])
        if _compares_integers(group):
            left, right, width = *(_as_float(group, side) for side in call.arguments[:2]), _WIDE
    kind = group.op.type if group.op else ""
    if kind in _EQUAL:
        return f"{lib}.exp(-{lib}.square(({left} - {right}) / 0.5))"
    if kind in _LESS:
        left, right = right, left
    return f"{lib}.sigmoid(({left} - {right}) / {width})"


def _both(group: Group) -> tuple[str, str] | None:
    """The user's `a & b` or `tf.logical_and(a, b)` of this comparison and another, and a product of two soft steps for
    it: a soft step beside a condition does not run. Null where what becomes of it is more than a number."""
    call, source = call_of(group), group.source
    uses = discrete_part(group.suspect).uses
    only_cast = bool(uses) and all(group.suspect.type_of(use.consumer) == "Cast" for use in uses)
    pair = conditions_joined(source.code, call.text) if call is not None and source is not None and only_cast else None
    if pair is None or _compares_integers(group):
        return None
    lib, steps = namespace(group), []
    for left, operator, right in pair[1:]:
        above, below = (left, right) if operator.startswith(">") else (right, left)
        steps.append(f"{lib}.sigmoid(({bracketed(above)} - {bracketed(below)}) / {_NARROW})")
    return pair[0], " * ".join(steps)


def _is_sequence_mask(group: Group) -> bool:
    return ((group.op.api if group.op else None) or "").endswith("sequence_mask")


def _compares_integers(group: Group) -> bool:
    ops = group.trace.ops
    given = [ops[edge.op].outputs[edge.output] for edge in (group.op.inputs if group.op else ()) if edge.op >= 0]
    return bool(given) and not any(is_float(tensor.dtype) for tensor in given)


def _as_float(group: Group, side: str) -> str:
    """One side of a comparison of integers: without the cast that made it one, or what it was a line before; what has
    no gradient anyway, such as a range, made a floating number."""
    bare = without_cast(side)
    if bare != side:
        return bracketed(bare)
    source = source_of(group.trace, group.suspect.culprit)
    cast = call_on(source.code, "tf.cast") if source is not None else None
    if cast is not None and source is not None and assigned_by(source.code) == side:
        return bracketed(without_cast(cast.text))
    return side if side.isdigit() else f"{_cast(group)}({side}, {_float(group)})"


def _cast(group: Group) -> str:
    return f"{namespace(group)}.cast"


def _float(group: Group) -> str:
    return '"float32"' if namespace(group) == "keras.ops" else "tf.float32"


def _soft_mask(call: Call | None, name: str) -> str:
    """A smooth `tf.sequence_mask` of one length or of many: about 1 below it and about 0 from there on."""
    length = bracketed(without_cast(call.argument(0, "lengths") or name)) if call else name
    size = (call.argument(1, "maxlen") if call else "n") or f"tf.math.ceil(tf.reduce_max({length}))"
    return f"tf.sigmoid(({length}[..., None] - tf.range({size}, dtype=tf.float32) - 0.5) / 0.2)"


def _cast_around(group: Group) -> str:
    """The user's cast of nothing but the comparison, on the same line; empty if there is none."""
    call, source = call_of(group), group.source
    around = call_around(source.code, call) if call is not None and source is not None else None
    return around.text if around is not None and around.head.rpartition(".")[2] in ("cast", "to_float") else ""


def _chosen(group: Group) -> tuple[str, str, str] | None:
    """The user's `tf.where` of nothing but this comparison, and its two sides; null if there is none."""
    choices = _choices(group)
    if len(choices) != len(discrete_part(group.suspect).uses) or not choices:
        return None
    found = {_where_of(group, op) for op in choices}
    call = found.pop() if len(found) == 1 else None
    if call is None:
        return None
    yes, no = (call.argument(place, name) for place, name in ((1, "x"), (2, "y")))
    if yes is None or no is None:
        return None
    return call.text, yes, no


def _choices(group: Group) -> list[int]:
    """Where the comparison is the condition."""
    uses = discrete_part(group.suspect).uses
    places = {use.consumer for use in uses if use.input == 0 and use.via == group.culprit}
    return [op for op in sorted(places) if group.trace.ops[op].type in CHOICES]


def _where_of(group: Group, op: int) -> Call | None:
    source, name = source_of(group.trace, op), called(group.trace, op).strip("`")
    return call_on(source.code, name) if source is not None and name.endswith("where") else None


def _blend(yes: str, no: str) -> str:
    return f"gate * {bracketed(yes)}" + ("" if _is_zero(no) else f" + (1 - gate) * {bracketed(no)}")


def _is_zero(expression: str) -> bool:
    if expression in ("0", "0.0"):
        return True
    call = innermost_call(expression)
    return call is not None and call.text == expression and call.head.rpartition(".")[2] in ("zeros_like", "zeros")


def _is_computed(expressions: tuple[str, ...]) -> bool:
    """Whether something is computed in one of them, which may not be finite everywhere."""
    nodes = [node for each in expressions if not _is_zero(each) for node in ast.walk(ast.parse(each))]
    return any(isinstance(node, (ast.Call, ast.Div, ast.Pow)) for node in nodes)


def _blended_branches(group: Group) -> str:
    """What the branches of the user's `tf.cond` compute, blended; empty if their line does not show it."""
    uses = [use for use in discrete_part(group.suspect).uses if group.suspect.type_of(use.consumer) in _BRANCHES]
    source = source_of(group.trace, uses[0].consumer) if len({use.consumer for use in uses}) == 1 else None
    if source is None:
        return ""
    call = call_on(source.code, "tf.cond")
    given = [call.argument(1, "true_fn"), call.argument(2, "false_fn")] if call is not None else []
    sides = [_computed(each) for each in given if each is not None]
    return _blend(*sides) if len(sides) == 2 and all(sides) else ""


def _computed(function: str) -> str:
    """What calling a branch gives: the body of a lambda without arguments, the call of a name; else empty."""
    try:
        node = ast.parse(function, mode="eval").body
    except SyntaxError:
        return ""
    if isinstance(node, ast.Lambda):
        return "" if node.args.args else ast.unparse(node.body)
    return f"{function}()" if isinstance(node, (ast.Name, ast.Attribute)) else ""


WRITERS: dict[str, Writer] = {"nondiff_comparison": comparison, "predicate_only": predicate}
