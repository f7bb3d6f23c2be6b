"""A square root at zero, where its slope is infinite."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.not_finite import bounded_root
from tb_gradflow.analyse.words.broken import BROKEN, is_undefined
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, call_of, namespace


def message_and_fix(group: Group) -> Text:
    """`tf.norm` and `tf.math.reduce_std` end in a square root without an epsilon, so they are written out."""
    name = ((group.op.api if group.op else None) or "").rpartition(".")[2]
    inside = _under_the_root(group, name)
    inverse = name == "rsqrt" or (inside is None and group.op is not None and group.op.type == "Rsqrt")
    bounded = "{lib}.maximum({x}, 1e-12)"
    if inverse:
        # An epsilon that is added instead would make the derivative finite, but 5e17.
        root = "keras.ops.rsqrt" if namespace(group) == "keras.ops" else "tf.math.rsqrt"
        why = "{op} is given a value that is not above zero." if is_undefined(group) else "{op} is infinite at zero."
        return Template(BROKEN + why, f"Keep its input above zero: `{root}({bounded})`.")(group)
    if inside is None and is_undefined(group):
        return Template(
            BROKEN + "{op} is given a negative value, which has no square root.",
            "Keep its input above zero: `{lib}.sqrt(" + bounded + ")`.",
        )(group)
    zero = "input contains a zero" if inside is None else "result is zero for some elements"
    return Template(
        BROKEN + "the derivative of {op} is infinite at zero, and its " + zero + ".",
        "Keep its input away from zero: `{lib}.sqrt(" + (inside or "{bx}") + " + 1e-12)`.",
    )(group)


def _under_the_root(group: Group, name: str) -> str | None:
    """The value whose root a norm or a standard deviation is, along the user's axis; None for other functions."""
    call, lib = call_of(group), namespace(group)
    kept = [each for each in (call.arguments[1:] if call else ()) if each.startswith(("axis=", "keepdims="))]
    if call is not None and name in _AXIS_SECOND and len(call.arguments) > 1 and "=" not in call.arguments[1]:
        kept = [f"axis={call.arguments[1]}", *kept]
    x, axes = call.subject if call else "x", "".join(f", {each}" for each in kept)
    total = "keras.ops.sum(keras.ops.square" if lib == "keras.ops" else "tf.reduce_sum(tf.square"
    if name in ("norm", "reduce_euclidean_norm"):
        return f"{total}({x}){axes})"
    variance = "keras.ops.var" if lib == "keras.ops" else "tf.math.reduce_variance"
    return f"{variance}({x}{axes})" if name in ("reduce_std", "std") else None


_AXIS_SECOND = ("reduce_euclidean_norm", "reduce_std", "std")


CAUSE = Cause(
    name="sqrt_at_zero",
    meaning="the gradient becomes NaN or infinite at a square root, including those inside `tf.norm` and standard "
    "deviations",
    severity="error",
    fix="add an epsilon",
    text=message_and_fix,
    edits=(bounded_root,),
    quotes=(
        "Keep its input away from zero: ",
        "Keep its input above zero: ",
    ),
)
