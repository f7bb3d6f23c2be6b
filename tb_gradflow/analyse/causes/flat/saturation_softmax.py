"""A softmax is so confident that it is flat."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.bodies import flat_unseen
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import SOFTMAX
from tb_gradflow.analyse.words.fields import ZERO, Template
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.analyse.words.phrases import FROM_LOGITS, is_output, large_inputs
from tb_gradflow.analyse.words.steep import less_steep, made_large


def rule(suspect: Suspect) -> Verdict | None:
    """A softmax so confident that its slope rounds to zero."""
    if suspect.op.type in SOFTMAX:
        return Verdict("saturation_softmax", "warning")
    unseen = flat_unseen(suspect, SOFTMAX)
    return Verdict("saturation_softmax", "warning", unseen) if unseen >= 0 else None


def message_and_fix(group: Group) -> Text:
    scaled = (
        "Scale the scores before the softmax until they are around one, for example `{bx} / 10.0`; attention divides "
        "them by the root of the number of features."
    )
    logits = "Scale the input, `{bx} / 10.0`, or " + FROM_LOGITS + "."
    factor = made_large(group)
    why = f"{factor} before it, and " if factor else ""
    text = Template(
        ZERO + "{op} is saturated: " + why + "its output is so close to one-hot that its derivative rounds to zero.",
        less_steep(factor) + "." if factor else logits if is_output(group) else scaled,
    )(group)
    return Text(text.message, text.fix + large_inputs(group))


CAUSE = Cause(
    name="saturation_softmax",
    meaning="the gradient becomes zero at a softmax, or at a loss that contains one; or a softmax alone shrinks it by "
    "four orders of magnitude",
    severity="warning; error where no variable gets any gradient, in this step or before",
    fix="`from_logits=True`",
    text=message_and_fix,
)
