"""The batch contains NaN or infinity."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.not_finite.singular import CAUSE_OF_TYPE
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.words.broken import BROKEN
from tb_gradflow.analyse.words.fields import Template, fields
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.analyse.words.phrases import of_batch


def rule(suspect: Suspect) -> Verdict | None:
    """The batch contains NaN, and the loss shows it. Infinities alone may be an intended mask for a softmax."""
    if suspect.measured.loss_is_finite(suspect.target):
        return None
    reports = [report for _, report in suspect.measured.nonfinite_inputs]
    if any(report.nan_count for report in reports) or (reports and not _is_masked_softmax(suspect)):
        return Verdict("nonfinite_input", "error", NO_OP)
    return None


def _is_masked_softmax(suspect: Suspect) -> bool:
    return CAUSE_OF_TYPE.get(suspect.op.type) == "softmax_all_masked"


def last_resort_input(suspect: Suspect) -> Verdict | None:
    """The batch contains NaN that the loss does not show (a ReLU turns it into zeros), and nothing else explains the
    gradient."""
    return Verdict("nonfinite_input", "error", NO_OP) if suspect.measured.nonfinite_inputs else None


def message_and_fix(group: Group) -> Text:
    if not group.suspect.measured.nonfinite_inputs:
        return Template(
            BROKEN + "{op} is given NaN that depends on no variable: the data contain it, or the step computes it from "
            "the data alone.",
            "Look at what else {op} is given. If the step computes it, such as a mask that is divided by its own sum, "
            "keep the divisor above zero. If it is data, clean it before training: `np.nan_to_num(data)`, or remove "
            "those rows.",
        )(group)
    [(first, _), *_] = group.suspect.measured.nonfinite_inputs
    labels = first.partition("[")[0] == "y"
    message = f"{fields(group)['plight']}: {of_batch(group)[0].lower()}{of_batch(group)[1:]}"
    if labels and group.suspect.measured.loss_is_finite(group.suspect.target):
        message += " The loss is finite because it hides what is computed from them; the gradient is still NaN."
    return Text(message, _MISSING_LABELS if labels else _cleaned(first if first.isidentifier() else "x"))


def _cleaned(x: str) -> str:
    return (
        f"Clean the data before training: `{x} = np.nan_to_num({x})`, or remove those rows, "
        f"`keep = np.isfinite({x}).reshape(len({x}), -1).all(axis=1)`."
    )


# Zero is a label like any other, so it must not take the place of a missing one.
_MISSING_LABELS = (
    "Remove the rows without a label before training. Or replace the missing labels before the loss is computed, and "
    "leave their terms out afterwards: `known = tf.math.is_finite(y_true)`, `y_true = tf.where(known, y_true, "
    "tf.zeros_like(y_true))`, then multiply the loss of each element by `tf.cast(known, tf.float32)`."
)


CAUSE = Cause(
    name="nonfinite_input",
    meaning="the batch contains NaN, and the loss is not finite; or nothing else explains it. Infinities alone in "
    "front of a softmax are taken to be a mask",
    severity="error",
    fix="clean the data",
    text=message_and_fix,
    without_op="the batch is not finite",
    told_at_once=True,
)
