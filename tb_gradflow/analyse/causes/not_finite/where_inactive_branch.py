"""`tf.where` hides a value that is not finite, but not its derivative."""

from __future__ import annotations

from itertools import pairwise

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.not_finite.singular import CAUSE_OF_TYPE
from tb_gradflow.analyse.edits.not_finite import bounded_in_branch, is_hidden_everywhere, safe_branch
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.words.code import Call, bracketed, calls_in, is_whole_power, negated, sides_of
from tb_gradflow.analyse.words.fields import fields
from tb_gradflow.analyse.words.names import Group, Text, call_at, call_of, called, namespace, place_of, source_of
from tb_gradflow.analyse.words.phrases import of_batch

_ELEMENTWISE = frozenset(
    {"Mul", "AddV2", "Add", "Sub", "Neg", "RealDiv", "Div", "Exp", "Log", "Log1p", "Sqrt", "Rsqrt", "Square", "Pow"}
    | {"Cast", "Identity", "Reciprocal", "Inv", "Reshape", "Acos", "Asin", "Tanh", "Sigmoid", "Abs", "Expm1"}
    | {"Maximum", "Minimum", "Softplus", "SquaredDifference", "MulNoNan", "Xdivy", "Xlogy", "Atanh", "Acosh", "Sign"}
)


def rule(suspect: Suspect) -> Verdict | None:
    """`tf.where` hides the value, which is why the loss is finite, but not its derivative: zero times infinity. The
    evidence is the zeros in the incoming gradient, which mark the hidden elements.
    """
    if not suspect.measured.loss_is_finite(suspect.target):
        return None
    if not _is_hidden(suspect, suspect.culprit) or _another_is_singular(suspect):
        return None
    leaving = suspect.measured.of_op(suspect.target, suspect.producer)
    if leaving is not None and leaving.inf_count and not leaving.nan_count:
        return None  # zero times infinity is NaN: the elements that are infinite were not hidden
    return Verdict("where_inactive_branch", "error", _singular_in(suspect))


def _is_hidden(suspect: Suspect, place: int) -> bool:
    """Whether a `tf.where` uses an op's value, and leaves out some of its elements."""
    incoming = suspect.measured.of_op(suspect.target, place)
    if incoming is not None and incoming.zero_fraction == 0:
        return False
    trace = suspect.topology.trace
    for op, after in pairwise(suspect.topology.gradient(suspect.target).from_op(place)):
        if trace.ops[after].type in ("Select", "SelectV2"):
            return any(edge.op == op and edge.input > 0 for edge in trace.ops[after].inputs)
        if trace.ops[after].type not in _ELEMENTWISE:
            return False
    return False


def _singular_in(suspect: Suspect) -> int:
    """The hidden function that has no finite derivative: the birthplace itself, or, if that only multiplies by an
    infinite value, the op that computes this value."""
    if suspect.op.type in CAUSE_OF_TYPE:
        return suspect.culprit
    trace = suspect.topology.trace
    for edge in suspect.op.inputs:
        if edge.op >= 0 and trace.ops[edge.op].type in CAUSE_OF_TYPE:
            return edge.op
    return suspect.culprit


def _another_is_singular(suspect: Suspect) -> bool:
    """Whether a `tf.where` also hides another function of the same value that can have an infinite derivative, while
    the suspect cannot: of the gradients that are added, that function's is the one that is not finite."""
    if _singular_in(suspect) != suspect.culprit or suspect.op.type in CAUSE_OF_TYPE:
        return False
    users = suspect.topology.onward(suspect.producer)
    return any(suspect.type_of(user) in CAUSE_OF_TYPE and _is_hidden(suspect, user) for user in users)


def message_and_fix(group: Group) -> Text:
    names, call = fields(group), call_of(group)
    product = group.op is not None and group.op.type in ("Mul", "MatMul")
    why = "multiplies by a non-finite value" if product else "has no finite derivative"
    batch = of_batch(group)
    chooser, side = _chooser(group)
    hides = called(group.trace, chooser) if chooser >= 0 else "`tf.where`"
    where = place_of(group.trace, chooser) if chooser >= 0 and group.trace.ops[chooser].source != _line(group) else ""
    fix = _made_safe(group, call, chooser, side) if call is not None else _UNSEEN.format(lib=namespace(group))
    if is_hidden_everywhere(group):
        fix = _ELSEWHERE.format(them=names["variable"])
    return Text(
        f"{names['they_get']} NaN: {names['op']} {why} for some elements, and {hides}{where} hides their value but not "
        f"their gradient, which becomes 0 * inf.{' ' + batch if batch else ''}",
        fix,
    )


_ELSEWHERE = (
    "Start at another value: here every element takes the other branch, which does not depend on `{them}`, so that a "
    "safe input would only turn NaN into zero. To pass through this point, use a formula that holds near it, such as a "
    "series."
)


_UNSEEN = (
    "Make the input safe as well: `{lib}.where(ok, f({lib}.where(ok, x, safe)), other)`, with your condition as `ok`, "
    "your two cases as `f(x)` and `other`, and a number at which `f` is finite as `safe`."
)


def _made_safe(group: Group, call: Call, chooser: int, side: int) -> str:
    """The user's call with a safe value; if the condition is not known, the call is kept finite by a bound."""
    lib, singular = namespace(group), _singular(call)
    subject, inside, value = _what_is_safe(singular, lib)
    hidden = call.text.replace(singular.text, inside)
    ok = _condition(group, chooser, side)
    if not ok:
        return (
            f"Keep it finite for the hidden elements as well: use "
            f"`{call.text.replace(singular.text, _bounded(singular, lib))}` instead of `{call.text}`."
        )
    named = "" if ok == "ok" else f"`ok = {ok}`, "
    start = f"Make the input safe as well: {named}`safe = {lib}.where(ok, {subject}, {value})`, "
    chosen = _chosen(group, chooser, side, call, hidden)
    if chosen:
        return f"{start}then `{lib}.where(ok, {chosen})`."
    return f"{start}and use `{hidden}` instead of `{call.text}`; {called(group.trace, chooser)} stays as it is."


def _chosen(group: Group, chooser: int, side: int, call: Call, hidden: str) -> str:
    """The two cases of the user's `tf.where`, first the hidden one, with the safe value in it; empty if it is not on
    the same line."""
    choice = call_at(group, chooser)
    if choice is None:
        return ""
    hides, other = (
        choice.argument(place, "xy"[place - 1]) or choice.argument(place, f"x{place}") for place in (side, 3 - side)
    )
    return f"{hides.replace(call.text, hidden)}, {other}" if hides and other and call.text in hides else ""


def _line(group: Group) -> int | None:
    return group.op.source if group.op is not None else None


def _chooser(group: Group) -> tuple[int, int]:
    """The `tf.where` after the culprit, and which of its inputs depends on it: 1 if the condition is true, 2 if it is
    false; -1 if it is not found."""
    target = group.suspect.target
    way = group.suspect.topology.gradient(target).from_op(group.culprit) if group.culprit >= 0 <= target else ()
    for op, after in pairwise(way):
        if group.trace.ops[after].type in ("Select", "SelectV2"):
            sides = [edge.input for edge in group.trace.ops[after].inputs if edge.op == op and edge.input > 0]
            return after, sides[0] if len(sides) == 1 else 1
    return -1, 1


def _condition(group: Group, chooser: int, side: int) -> str:
    """The condition under which the hidden value counts, as code from the user's `tf.where`; empty if that is not
    known, or its names belong to another function."""
    source, call = source_of(group.trace, chooser), call_at(group, chooser)
    condition = (call.argument(0, "condition") or call.argument(0, "x1")) if call is not None else None
    if condition is None or group.source is None or source is None:
        return ""
    if (source.file, source.function) != (group.source.file, group.source.function):
        return ""
    return condition if side == 1 else negated(condition)


def _singular(call: Call) -> Call:
    """The call without a finite derivative in the user's expression: the logarithm in `alpha * tf.math.log(x)`, the
    root in `a / tf.sqrt(v)`."""
    if _name(call) in _SAFE and not is_whole_power(call):
        return call
    part = call.arguments[-1] if call.head == "/" else call.text
    return next((each for each in calls_in(part) if _name(each) in _SAFE and not is_whole_power(each)), call)


def _what_is_safe(call: Call, lib: str) -> tuple[str, str, str]:
    """The part that must be safe, the user's expression with a safe value in its place, and a number at which it is
    finite. A norm and a standard deviation are roots of a sum, and the sum may be zero.
    """
    name = _name(call)
    if name in _ROOTS:
        return _rooted(call, lib), f"{lib}.sqrt(safe)", "1.0"
    if call.head == "/":
        return call.arguments[-1], f"{bracketed(call.arguments[0])} / safe", "1.0"
    if call.head == "**":
        return call.arguments[0], f"safe ** {bracketed(call.arguments[1])}", "1.0"
    if call.is_operator:
        return call.arguments[-1], f"{bracketed(call.arguments[0])} {call.head} safe", "1.0"
    return call.subject, call.with_subject("safe"), _SAFE.get(name, "1.0")


def _rooted(call: Call, lib: str) -> str:
    """The value whose root a norm or a standard deviation is."""
    length, keras = _name(call) == "norm", lib == "keras.ops"
    axis = call.argument(2 if length else 1, "axis")
    over = f", axis={axis}" if axis else ""
    if length:
        return f"{'keras.ops.sum' if keras else 'tf.reduce_sum'}({lib}.square({call.subject}){over})"
    return f"{'keras.ops.var' if keras else 'tf.math.reduce_variance'}({call.subject}{over})"


def _bounded(call: Call, lib: str) -> str:
    """The user's call, with its input bounded so that its derivative is finite."""
    name, x = _name(call), call.subject
    if call.head == "/":
        divide = f"{lib}.divide_no_nan" if lib == "keras.ops" else "tf.math.divide_no_nan"
        return f"{divide}({', '.join(call.arguments)})"
    if name in _ROOTS:
        return f"{lib}.sqrt({lib}.maximum({_rooted(call, lib)}, 1e-12))"
    if call.head == "**":
        return f"{lib}.maximum({call.arguments[0]}, 1e-12) ** {bracketed(call.arguments[1])}"
    if name in _EXPONENTIALS:
        # In a quotient, the divisor may be zero in other hidden elements, or in other batches.
        sides = sides_of(x, "/")
        return call.with_subject(f"{lib}.minimum({_bounded(Call(x, sides, '/'), lib) if sides else x}, 80.0)")
    if name in _OF_ONE:
        clip = "keras.ops.clip" if lib == "keras.ops" else "tf.clip_by_value"
        return call.with_subject(f"{clip}({x}, -1 + 1e-6, 1 - 1e-6)")
    return call.with_subject(f"{lib}.maximum({x}, {'1e-6 - 1' if name == 'log1p' else '1e-12'})")


def _name(call: Call) -> str:
    return call.head.rpartition(".")[2] if call.head != "**" else "pow"


_ROOTS = ("norm", "reduce_std", "std")
_EXPONENTIALS = ("exp", "expm1", "sinh", "cosh")
_OF_ONE = ("acos", "asin", "atanh", "arccos", "arcsin", "arctanh", "erfinv")

# For each function whose derivative is not finite everywhere, a number at which it is.
_SAFE = (
    dict.fromkeys(("sqrt", "rsqrt", "log", "log1p", "pow", "power", "reciprocal", "lgamma", "digamma", *_ROOTS), "1.0")
    | dict.fromkeys((*_OF_ONE, *_EXPONENTIALS), "0.0")
    | dict.fromkeys(("acosh", "arccosh"), "2.0")
)


CAUSE = Cause(
    name="where_inactive_branch",
    meaning="the loss is finite, elements of the incoming gradient are zero, and a `tf.where` follows",
    severity="error",
    fix="make its input safe too",
    text=message_and_fix,
    edits=(safe_branch, bounded_in_branch),
    quotes=("Make the input safe as well: ",),
)
