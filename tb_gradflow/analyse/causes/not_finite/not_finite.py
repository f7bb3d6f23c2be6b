"""NaN or infinity for none of the known reasons: the fallback."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.not_finite.singular import accused
from tb_gradflow.analyse.evidence.bodies import unrecorded_before
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.evidence.zeros import PRODUCTS
from tb_gradflow.analyse.graph.op_sets import LOOPS
from tb_gradflow.analyse.step.birth import values_of
from tb_gradflow.analyse.words.broken import BROKEN
from tb_gradflow.analyse.words.code import Call
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.forward_pass import makes_nan_of_infinity
from tb_gradflow.analyse.words.names import Group, Text, call_of
from tb_gradflow.analyse.words.phrases import CHECK


def rule(suspect: Suspect) -> Verdict | None:
    """Not finite for a reason that the measured values do not show: the op is named."""
    return Verdict("not_finite", "error")


# Half of float32's decades: larger values are the result of growth.
_GROWN = 1e19

# With such a scale, a gradient of one is within eight decades of the largest float32.
_LARGE_SCALE = 1e30


def scale_too_large(suspect: Suspect) -> Verdict | None:
    """The loss is finite, but its product with the loss scale, or a gradient of that product, is not, and no op has a
    singularity there. A recurrence may grow without a scale, unless the scale was seen to be that large."""
    target = suspect.topology.trace.targets[suspect.target] if suspect.target >= 0 else None
    measured = suspect.measured
    if target is None or not target.scaled or not measured.loss_is_finite(suspect.target):
        return None
    if accused(suspect, suspect.culprit) is not None or measured.largest > _GROWN:
        return None
    known = scale_of(suspect)
    is_named = known >= _LARGE_SCALE if known is not None else _overflows(suspect) and not _is_in_loop(suspect)
    return Verdict("not_finite", "error") if is_named else None


def _overflows(suspect: Suspect) -> bool:
    """Whether a gradient first stops being finite at a product, and is infinite there, not only NaN."""
    born = suspect.measured.of_op(suspect.target, suspect.producer) if suspect.producer >= 0 else None
    infinite = any(each is not None and each.inf_count > 0 for each in (born, suspect.state.gradient))
    return infinite and suspect.op.type in (*PRODUCTS, "Square", "SquaredDifference", "Pow")


def _is_in_loop(suspect: Suspect) -> bool:
    """Whether the gradient may have stopped being finite inside a loop."""
    return any(suspect.type_of(op) in LOOPS for op in (suspect.culprit, *unrecorded_before(suspect)))


def scale_of(suspect: Suspect) -> float | None:
    """The factor by which the optimizer has multiplied the loss; `None` if it was not measured."""
    place = suspect.topology.trace.targets[suspect.target].op
    values = values_of(suspect.measured)
    if place < 0 or suspect.type_of(place) != "Mul":
        return None
    constants = [each.value for each in suspect.topology.trace.ops[place].constants]
    given = [] if values is None else [each.largest for each in values.given(place)]
    return max([*constants, *given], default=None)


def given_nonfinite(suspect: Suspect) -> Verdict | None:
    """NaN or infinity was passed to the recorder."""
    return Verdict("not_finite", "error", NO_OP)


def message_and_fix_of_given(group: Group) -> Text:
    return Template(
        "{they_have} been given {size}{line}. How the gradient was computed is not recorded.",
        f"Check how it is computed; {CHECK}.",
    )(group)


def message_and_fix(group: Group) -> Text:
    if scale_too_large(group.suspect) is not None:
        return _scaled(group)
    if group.suspect.producer < 0:
        return Template(
            BROKEN + "all gradients are finite, so they do not show where this began.",
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


def _scaled(group: Group) -> Text:
    """The optimizer may skip such a step, as `LossScaleOptimizer` does, or apply it, as others with a
    `loss_scale_factor` do."""
    known, is_skipped = scale_of(group.suspect), group.verdict.severity == "info"
    scale = "the loss scale of this step" + (f", {known:.1g}," if known is not None else "")
    smaller = "a smaller scale: `keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=2.0**15)`"
    return Template(
        BROKEN
        + f"with {scale} a gradient exceeds the largest float32 value, 3.4e38, at {{op}}"
        + (", and the optimizer skipped the step." if is_skipped else ". Without the scale, the loss is finite."),
        "Nothing to fix if it happens now and then: the loss scale is reduced after each such step. If it persists, "
        f"start with {smaller}."
        if is_skipped
        else f"Use {smaller}. In float32 and bfloat16, no loss scale is needed.",
    )(group)


def _predicted(call: Call | None) -> str | None:
    """For a loss function, the argument with the predictions; the labels come first and are not the cause. None for
    other functions."""
    if call is None or not any(word in call.head for word in ("entropy", "losses.")):
        return None
    return call.argument(len(call.arguments), "logits") or call.argument(1, "y_pred")


CAUSE = Cause(
    name="not_finite",
    meaning="NaN or infinity, and no other cause explains it: the finding names the op at which this begins. Or the "
    "loss is finite, and its product with a loss scale has a gradient that is too large for float32: info if the "
    "optimizer skipped the step",
    severity="error",
    fix="check its inputs",
    text=message_and_fix,
    text_of_given=message_and_fix_of_given,
)
