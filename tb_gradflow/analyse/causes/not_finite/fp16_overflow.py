"""A value above 65504, the largest float16."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.not_finite.singular import accused, singular_here
from tb_gradflow.analyse.edits.settings import wider_range
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.op_sets import is_half
from tb_gradflow.analyse.words.broken import BROKEN
from tb_gradflow.analyse.words.fields import ZERO, Template
from tb_gradflow.analyse.words.names import Group, Text

LARGEST_HALF = 65504.0


def overflow_of_half(suspect: Suspect) -> Verdict | None:
    """Above 65504 half precision is infinite: at the birthplace, or before it if the loss shows it too."""
    if singular_here(suspect) is not None:
        return None
    if is_half(suspect.topology.trace.ops[suspect.culprit]) or _comes_back_half(suspect):
        return Verdict("fp16_overflow", "error")
    if suspect.measured.loss_is_finite(suspect.target):
        return None
    half = suspect.measured.once(
        ("half", suspect.culprit),
        lambda: _overflown(suspect),
    )
    if half < 0:
        return None
    singular = accused(suspect, half)
    # In half precision, 1e-8 is zero and does not keep a divisor from zero.
    if singular is not None and singular.cause == "zero_over_zero":
        return singular
    return Verdict("fp16_overflow", "error", half)


def _comes_back_half(suspect: Suspect) -> bool:
    """Whether the gradient is cast to half precision there, as before a last layer in single precision."""
    return suspect.op.type == "Cast" and suspect.producer >= 0 and is_half(suspect.topology.trace.ops[suspect.producer])


def _overflown(suspect: Suspect) -> int:
    """The nearest op in half precision; before a softmax, if there is one: its output is at most one, and NaN only if
    its input was too large."""
    ancestors = suspect.topology.ancestors(suspect.culprit)
    half = [op for op in ancestors if is_half(suspect.topology.trace.ops[op])]
    beyond = [op for op in half if suspect.type_of(op) == "Mul" and _has_constant_beyond(suspect, op)]
    if beyond:
        return beyond[-1]
    softmax = next((op for op in half if suspect.type_of(op) == "Softmax"), -1)
    scores = [op for op in half if softmax >= 0 and op < softmax and suspect.type_of(op) in PRODUCTS]
    return next(iter([*sorted(scores, reverse=True)[:1], *half]), -1)


def _has_constant_beyond(suspect: Suspect, op: int) -> bool:
    return any(abs(constant.value) > LARGEST_HALF for constant in suspect.topology.trace.ops[op].constants)


def message_and_fix(group: Group) -> Text:
    beyond = [each.value for each in group.op.constants if abs(each.value) > LARGEST_HALF] if group.op else []
    if beyond and group.op is not None and group.op.type == "Mul":
        return Template(
            BROKEN + f"{{op}} multiplies by {beyond[0]:.3g}, which is infinite in float16, and zero times infinity is "
            "NaN.",
            "Stay above the lowest float16 value, -65504: `-6e4` is enough for a mask; or add it in float32.",
        )(group)
    if group.verdict.severity == "info":
        return Template(
            BROKEN
            + "with the loss scale of this step, a value at {op} exceeds the largest float16 value, 65504, so the "
            "optimizer skipped the step.",
            "Nothing to fix if it happens now and then: the loss scale is reduced after each such step. If it "
            "persists, compute this part in float32, `tf.cast({x}, tf.float32)`, or use `mixed_bfloat16`.",
        )(group)
    if group.states[0].status == "zero":
        return Template(
            ZERO
            + "the result of {op} exceeds the largest float16 value, 65504, so it is infinite, and what is divided "
            "by infinity is zero.",
            "Compute this part in float32, `tf.cast({x}, tf.float32)`, or use `mixed_bfloat16`.",
        )(group)
    return Template(
        BROKEN + "a value at {op} exceeds the largest float16 value, 65504.",
        "Compute this part in float32, `tf.cast({x}, tf.float32)`, or use `mixed_bfloat16`.",
    )(group)


CAUSE = Cause(
    name="fp16_overflow",
    meaning="the gradient becomes NaN or infinite in float16, and no other cause explains it; or behind a float16 op, "
    "if the loss is not finite; or it is zero, because a divisor is infinite in float16",
    severity="error",
    fix="float32 or bfloat16",
    text=message_and_fix,
    edits=(wider_range,),
)
