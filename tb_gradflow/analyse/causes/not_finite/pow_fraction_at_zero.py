"""A power with a fractional exponent at zero or below."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.not_finite import bounded_power
from tb_gradflow.analyse.words.broken import BROKEN, is_undefined
from tb_gradflow.analyse.words.code import bracketed, fractional_power_on
from tb_gradflow.analyse.words.fields import Template, fields, filled
from tb_gradflow.analyse.words.names import Group, Text, call_of


def message_and_fix(group: Group) -> Text:
    if is_undefined(group):
        return Template(
            BROKEN + "{op} is given a negative base, for which this power is not defined.",
            f"Keep its base above zero: `{_raised(group, 'tf.maximum({x}, 1e-7)')}`.",
        )(group)
    if group.op is not None and (group.op.api or "**").rpartition(".")[2] not in _POWERS:
        return Template(
            BROKEN + "inside {op}, a zero is raised to a fractional power, whose derivative is infinite there.",
            _WITHOUT_POWER.get(group.op.api or "", "Write {fn} yourself, and add `1e-7` to the base of the power."),
        )(group)
    return Template(
        BROKEN + "the derivative of {op} is infinite at zero, and its input contains a zero.",
        f"Keep its base away from zero: `{_raised(group, '{bx} + 1e-7')}`.",
    )(group)


_POWERS = ("**", "pow", "power", "norm")

_WITHOUT_POWER = {
    "tf.image.ssim_multiscale": "Where the two images have opposite contrast, it replaces negative values with zero. "
    "Start with `tf.image.ssim`, which uses no power, or with the mean squared error, until the images are similar.",
}


def _raised(group: Group, base: str) -> str:
    """The user's power with another base; of several on the line, one whose exponent is not an integer."""
    call = call_of(group)
    if call is None or group.source is None:
        return f"tf.pow({filled(base, fields(group))}, p)"
    call = fractional_power_on(group.source.code, call)
    return call.with_subject(filled(base, {"x": call.subject, "bx": bracketed(call.subject)}))


CAUSE = Cause(
    name="pow_fraction_at_zero",
    meaning="the gradient becomes NaN or infinite at a power whose exponent is not known to be an integer",
    severity="error",
    fix="add an epsilon",
    text=message_and_fix,
    edits=(bounded_power,),
    quotes=(
        "Keep its base away from zero: ",
        "Keep its base above zero: ",
    ),
)
