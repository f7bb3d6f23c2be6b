"""An inverse trigonometric function at the edge of its domain."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.not_finite import bounded_angle
from tb_gradflow.analyse.words.broken import BROKEN
from tb_gradflow.analyse.words.code import innermost_call
from tb_gradflow.analyse.words.fields import Template, fields
from tb_gradflow.analyse.words.names import Group, Text


def message_and_fix(group: Group) -> Text:
    """Code that already clips does so at the edge itself, which is too far."""
    x = fields(group)["x"]
    if group.op is not None and group.op.type == "Acosh":
        return Template(
            BROKEN + "the derivative of {op} is infinite at one, where its domain begins.",
            "Stay inside the domain: `{head}({lib}.maximum({x}, 1.0 + 1e-6))`.",
        )(group)
    inner = innermost_call(x)
    x = inner.subject if inner is not None and "clip" in inner.head else x
    return Template(
        BROKEN + "the derivative of {op} is infinite at the edge of its domain.",
        f"Stay inside the domain: clip its argument, `tf.clip_by_value({x}, -1 + 1e-6, 1 - 1e-6)`.",
    )(group)


CAUSE = Cause(
    name="acos_at_one",
    meaning="the gradient becomes NaN or infinite at an inverse trigonometric function",
    severity="error",
    fix="stay inside the domain",
    text=message_and_fix,
    edits=(bounded_angle,),
)
