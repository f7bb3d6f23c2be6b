"""An exponential that is too large for its type."""

from __future__ import annotations

import math

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.not_finite import bounded_exponential
from tb_gradflow.analyse.graph.op_sets import constant_of
from tb_gradflow.analyse.words.broken import BROKEN, logsumexp
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, namespace
from tb_gradflow.analyse.words.steep import less_steep, made_large

_NEAR = 6

# The result may be squared later, and returns as a factor of its gradient, which must still be finite.
_EXPONENT = 20.0


def message_and_fix(group: Group) -> Text:
    """The stable function that replaces the user's computation with the exponential."""
    fix = _stable_form(group)
    if group.op is not None and group.op.type in ("Cosh", "Sinh"):
        clip = "keras.ops.clip" if namespace(group) == "keras.ops" else "tf.clip_by_value"
        how = f"Scale the input, or clip it: `{{head}}({clip}({{x}}, -{_EXPONENT}, {_EXPONENT}))`."
        how = f"Write its logarithm in the stable form: `{fix}`." if fix else how
        return Template(BROKEN + "{op} overflows: its result is infinite for inputs below -89 or above 89.", how)(group)
    kept = f"Keep the exponent in range: `{{head}}({{lib}}.minimum({{x}}, {_EXPONENT}))`; or scale the input."
    how = f"Use the stable form: `{fix}`." if fix else kept
    steep = ""
    if factor := made_large(group):
        how += f" {less_steep(factor)}."
        steep = f" {factor[0].upper()}{factor[1:]}: even without overflow, a step that steep has almost no gradient."
    incoming = group.suspect.measured.of_op(group.suspect.target, group.culprit)
    if incoming is not None and not (incoming.nan_count or incoming.inf_count) and incoming.max_abs > _LARGE_GRADIENT:
        why = (
            f"the result of {{op}} is so large that its derivative overflows when multiplied by a gradient of "
            f"{incoming.max_abs:.0e}."
        )
        return Template(BROKEN + why, how)(group)
    return Template(BROKEN + "{op} overflows: its result is infinite for inputs above 88." + steep, how)(group)


# If the exponential itself is infinite, the result of a sum or a quotient is about one.
_LARGE_GRADIENT = 1e6


def _stable_form(group: Group) -> str:
    """Recognised by the ops after the exponential: `log(1 + e)`, `log(sum(e))`, `e / sum(e)`, `e / (1 + e)`;
    `log(cosh)`."""
    topology, trace, keras = group.suspect.topology, group.trace, namespace(group) == "keras.ops"
    neural = "keras.ops" if keras else "tf.nn"
    with_one = summed = False
    queue = [(user, 1) for user in topology.onward(group.culprit)] if group.culprit >= 0 else []
    if group.op is not None and group.op.type in ("Cosh", "Sinh"):
        logarithm_of_it = group.op.type == "Cosh" and any(trace.ops[user].type == "Log" for user, _ in queue)
        return f"{{bx}} + {neural}.softplus(-2.0 * {{bx}}) - {math.log(2):.6f}" if logarithm_of_it else ""
    for op, steps in queue:  # grows while it is walked
        kind = trace.ops[op].type
        with_one = with_one or (kind in _ADDITIONS and 1.0 in (constant_of(trace.ops[op], side) for side in (0, 1)))
        summed = summed or kind == "Sum"
        if kind == "Log1p" or (kind == "Log" and with_one):
            return f"{neural}.softplus({{x}})"
        if kind == "Log" and summed:
            return f"{logsumexp(group)}({{x}}, axis=-1)"
        if kind in ("RealDiv", "Reciprocal") and (summed or with_one):
            turned = constant_of(trace.ops[op], 0) is not None and not summed
            return f"{neural}.{'softmax' if summed else 'sigmoid'}({'-{bx}' if turned else '{x}'})"
        if steps < _NEAR and kind in _HANDING_ON:
            queue.extend((user, steps + 1) for user in topology.onward(op))
    return ""


_ADDITIONS = ("AddV2", "Add")
_HANDING_ON = (*_ADDITIONS, "Sum", "Reshape", "Mul", "ExpandDims", "Squeeze", "Cast", "Identity")


CAUSE = Cause(
    name="exp_overflow",
    meaning="the gradient becomes NaN or infinite at an exponential, or at a division by a sum of exponentials",
    severity="error",
    fix="softplus, logsumexp, softmax",
    text=message_and_fix,
    edits=(bounded_exponential,),
    quotes=(
        "Keep the exponent in range: ",
        "Scale the input, or clip it: ",
    ),
)
