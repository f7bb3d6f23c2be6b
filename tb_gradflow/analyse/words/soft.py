"""Texts for comparisons: a smooth replacement, and its use instead of a choice."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.suspects import discrete_part
from tb_gradflow.analyse.graph.op_sets import LESS, is_float, tensor_of
from tb_gradflow.analyse.words.code import (
    Call,
    assigned_by,
    bracketed,
    call_on,
    conditions_joined,
    innermost_call,
    is_simple,
    without_cast,
)
from tb_gradflow.analyse.words.fields import fields
from tb_gradflow.analyse.words.names import Group, call_of, namespace, short, source_of, unused_name

EQUAL = ("Equal", "NotEqual")

# The width of a soft step: for values of about one, and for positions, which are one apart.
_NARROW, _WIDE = 0.1, 0.5


def soft_step(group: Group) -> str:
    """A smooth replacement for the comparison in the user's line, with their names."""
    lib, call = namespace(group), call_of(group)
    if is_sequence_mask(group):
        return _soft_mask(call, short(group))
    left, right = ("x", short(group) if len(group.variables) == 1 else "threshold")
    width = _NARROW
    if call and len(call.arguments) > 1:
        left, right = (bracketed(without_cast(side)) for side in call.arguments[:2])
        if is_given_integers(group):
            left, right, width = *(_as_float(group, side) for side in call.arguments[:2]), _WIDE
    kind = group.op.type if group.op else ""
    if kind in EQUAL:
        return f"{lib}.exp(-{lib}.square(({left} - {right}) / 0.5))"
    if kind in LESS:
        left, right = right, left
    return f"{lib}.sigmoid(({left} - {right}) / {width})"


def both_conditions(group: Group) -> tuple[str, str] | None:
    """The user's `a & b` or `tf.logical_and(a, b)` of this comparison and another, and a product of two soft steps for
    it: a soft step combined with a condition does not run. None if the result is used as more than a number."""
    call, source = call_of(group), group.source
    uses = discrete_part(group.suspect).uses
    only_cast = bool(uses) and all(group.suspect.type_of(use.consumer) == "Cast" for use in uses)
    pair = conditions_joined(source.code, call.text) if call is not None and source is not None and only_cast else None
    if pair is None or is_given_integers(group):
        return None
    lib, steps = namespace(group), []
    for left, operator, right in pair[1:]:
        above, below = (left, right) if operator.startswith(">") else (right, left)
        steps.append(f"{lib}.sigmoid(({bracketed(above)} - {bracketed(below)}) / {_NARROW})")
    return pair[0], " * ".join(steps)


def is_sequence_mask(group: Group) -> bool:
    return ((group.op.api if group.op else None) or "").endswith("sequence_mask")


def is_given_integers(group: Group) -> bool:
    """Whether the inputs of the culprit are integers."""
    given = [tensor_of(group.trace, edge) for edge in (group.op.inputs if group.op else ())]
    known = [tensor for tensor in given if tensor is not None]
    return bool(known) and not any(is_float(tensor.dtype) for tensor in known)


def _as_float(group: Group, side: str) -> str:
    """One side of a comparison of integers: without the cast that made it an integer, or with its value from the line
    before; a value without a gradient anyway, such as a range, is cast to float."""
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
    """A smooth `tf.sequence_mask` of one or many lengths: about 1 below the length and about 0 from there on."""
    length = bracketed(without_cast(call.argument(0, "lengths") or name)) if call else name
    size = (call.argument(1, "maxlen") if call else "n") or f"tf.math.ceil(tf.reduce_max({length}))"
    return f"tf.sigmoid(({length}[..., None] - tf.range({size}, dtype=tf.float32) - 0.5) / 0.2)"


def blend(yes: str, no: str) -> str:
    return f"gate * {bracketed(yes)}" + ("" if is_zero_written(no) else f" + (1 - gate) * {bracketed(no)}")


def is_zero_written(expression: str) -> bool:
    if expression in ("0", "0.0"):
        return True
    call = innermost_call(expression)
    return call is not None and call.text == expression and call.head.rpartition(".")[2] in ("zeros_like", "zeros")


def passed_through(group: Group) -> str:
    """Code that keeps the value of the user's call and passes the gradient to its argument. An argument that is not a
    name is assigned to one, so that it is not computed twice (it may draw random numbers).
    """
    lib, call, v = namespace(group), call_of(group), unused_name(group)
    if call is None:
        return f"`x + {lib}.stop_gradient({fields(group)['whole']} - x)`"
    if call.head == "//":
        quotient = " / ".join(map(bracketed, call.arguments))
        return f"`{v} = {quotient}`, then `{v} + {lib}.stop_gradient({lib}.floor({v}) - {v})`"
    x = call.subject
    if is_simple(x):
        return f"`{x} + {lib}.stop_gradient({call.text} - {x})`"
    return f"`{v} = {x}`, then `{v} + {lib}.stop_gradient({call.with_subject(v)} - {v})`"
