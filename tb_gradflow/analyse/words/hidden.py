"""Words for what a `tf.where` hides: its value, and not its derivative."""

from __future__ import annotations

from itertools import pairwise

from tb_gradflow.analyse.words.code import Call, bracketed, call_on, innermost_call, negated
from tb_gradflow.analyse.words.fields import fields
from tb_gradflow.analyse.words.names import Group, Text, Writer, call_of, called, namespace, place_of, source_of
from tb_gradflow.analyse.words.spoiled import of_batch


def where_inactive(group: Group) -> Text:
    names, call = fields(group), call_of(group)
    product = group.op is not None and group.op.type in ("Mul", "MatMul")
    why = "multiplies with something that is not finite" if product else "has no finite derivative"
    divides = group.op is not None and group.op.type in _DIVISIONS
    x, hidden = _made_safe(call, divides=divides) if call else ("x", "f(safe)")
    batch, lib = of_batch(group), namespace(group)
    chooser, side = _chooser(group)
    hides = called(group.trace, chooser) if chooser >= 0 else "`tf.where`"
    where = place_of(group.trace, chooser) if chooser >= 0 and group.trace.ops[chooser].source != _line(group) else ""
    chosen = _chosen(group, chooser, side, call, hidden) or f"{hidden}, other"
    return Text(
        f"{names['they_get']} NaN: {names['op']} {why} for some elements, and {hides}{where} hides their value but not "
        f"their gradient, which becomes 0 * inf.{' ' + batch if batch else ''}",
        f"Make what goes in safe as well{_condition(group, chooser, side)}`safe = {lib}.where(ok, {x}, 1.0)`, then "
        f"`{lib}.where(ok, {chosen})`.",
    )


def _chosen(group: Group, chooser: int, side: int, call: Call | None, hidden: str) -> str:
    """What the user's own `tf.where` is given for both cases, the one to be hidden with the safe value in it first;
    empty if it does not stand on the same line."""
    choice, source = _choice(group, chooser), source_of(group.trace, chooser)
    if choice is None or call is None or source is None or source != group.source:
        return ""
    hides, other = (
        choice.argument(place, "xy"[place - 1]) or choice.argument(place, f"x{place}") for place in (side, 3 - side)
    )
    return f"{hides.replace(call.text, hidden)}, {other}" if hides and other and call.text in hides else ""


def _line(group: Group) -> int | None:
    return group.op.source if group.op is not None else None


def _chooser(group: Group) -> tuple[int, int]:
    """The `tf.where` behind the culprit, and which of its inputs that is in: 1 where the condition holds, 2 where
    it does not; -1 if it is not found."""
    target = group.suspect.target
    way = group.suspect.topology.gradient(target).from_op(group.culprit) if group.culprit >= 0 <= target else ()
    for op, after in pairwise(way):
        if group.trace.ops[after].type in ("Select", "SelectV2"):
            sides = [edge.input for edge in group.trace.ops[after].inputs if edge.op == op and edge.input > 0]
            return after, sides[0] if len(sides) == 1 else 1
    return -1, 1


def _choice(group: Group, chooser: int) -> Call | None:
    source = source_of(group.trace, chooser)
    return call_on(source.code, called(group.trace, chooser).strip("`")) if source is not None else None


def _condition(group: Group, chooser: int, side: int) -> str:
    """What `ok` is, by the user's own call of `tf.where`: code where it can be said on the same line."""
    source, call = source_of(group.trace, chooser), _choice(group, chooser)
    condition = (call.argument(0, "condition") or call.argument(0, "x1")) if call is not None else None
    if condition is None or group.source is None or source is None:
        return ": "
    ok = condition if side == 1 else negated(condition)
    if (source.file, source.function) == (group.source.file, group.source.function):
        return ": " if ok == "ok" else f": `ok = {ok}`, "
    opposite = "" if side == 1 else "the opposite of "
    return f", with {opposite}its condition for `ok`, `{ok}`: "


def _made_safe(call: Call, *, divides: bool) -> tuple[str, str]:
    """What has to be safe, and the user's expression with that in its place.

    Of `alpha * tf.math.log(x)` it is the argument of the logarithm, of `a / b` the divisor: what is added up or
    averaged in it may be zero in many ways, and of a root or a logarithm in it the argument.
    """
    inner = innermost_call(call.arguments[-1] if divides and call.head == "/" else call.text)
    singular = inner is not None and inner.head.rpartition(".")[2] in _SINGULAR
    if inner is not None and (singular or not divides or call.head != "/"):
        return inner.subject, call.text.replace(inner.text, inner.with_subject("safe"))
    return call.arguments[-1], f"{bracketed(call.arguments[0])} {call.head} safe"


_DIVISIONS = ("RealDiv", "Div")
_SINGULAR = ("sqrt", "rsqrt", "norm", "reduce_std", "std", "log", "log1p", "pow", "power", "acos", "asin", "reciprocal")


WRITERS: dict[str, Writer] = {"where_inactive_branch": where_inactive}
