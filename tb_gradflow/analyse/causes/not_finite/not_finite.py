"""NaN or infinity for none of the known reasons: the fallback."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.words.broken import BROKEN
from tb_gradflow.analyse.words.code import Call
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, call_of
from tb_gradflow.analyse.words.phrases import CHECK
from tb_gradflow.analyse.words.seen import makes_nan_of_infinity


def rule(suspect: Suspect) -> Verdict | None:
    """Not finite for a reason that the measured values do not show: the op is named."""
    return Verdict("not_finite", "error")


def given_nonfinite(suspect: Suspect) -> Verdict | None:
    """NaN or infinity was passed to the recorder."""
    return Verdict("not_finite", "error", NO_OP)


def message_and_fix_of_given(group: Group) -> Text:
    return Template(
        "{they_have} been given {size}{line}. How the gradient was computed is not recorded.",
        f"Check how it is computed; {CHECK}.",
    )(group)


def message_and_fix(group: Group) -> Text:
    if group.suspect.producer < 0:
        return Template(
            BROKEN + "all gradients are finite, so a value became non-finite where no gradient shows it.",
            "Find it with `tf.debugging.enable_check_numerics()`.",
        )(group)
    if makes_nan_of_infinity(group):
        product = group.op is not None and group.op.type in ("Mul", "MatMul", "BatchMatMulV2", "Einsum")
        how = "multiplies zero by infinity" if product else "is given infinities, and its result is NaN"
        return Template(
            BROKEN + "{op} " + how + ", which is NaN." * product + "." * (not product),
            "Use a large number instead of infinity, `-1e9` for masked scores; or select instead of multiplying, "
            "`tf.where(keep, 0.0, -1e9)`.",
        )(group)
    x = _predicted(call_of(group)) or "{x}"
    return Template(
        BROKEN + "the gradient is finite at the output of {op}, but not at its input.",
        f'Check the input of {{op}} in this step: `tf.debugging.check_numerics({x}, "{{kind}}")`.',
    )(group)


def _predicted(call: Call | None) -> str | None:
    """For a loss function, the argument with the predictions; the labels come first and are not the cause. None for
    other functions."""
    if call is None or not any(word in call.head for word in ("entropy", "losses.")):
        return None
    return call.argument(len(call.arguments), "logits") or call.argument(1, "y_pred")


CAUSE = Cause(
    name="not_finite",
    meaning="NaN or infinity, and no other cause explains it: the op is named",
    severity="error",
    fix="check its inputs",
    text=message_and_fix,
    text_of_given=message_and_fix_of_given,
)
