"""The update of this step made weights NaN or infinite."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.step.measured import NONFINITE_AFTER, SQUARE_OVERFLOWS
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.analyse.words.phrases import counted


def broken_by_update(suspect: Suspect) -> Verdict | None:
    """A finite gradient, and weights that are NaN or infinite after the step: the optimizer made them so. If the
    gradient of another variable is not finite, the optimizer only spread that: the norm of all gradients is then not
    finite."""
    became = suspect.state.variable in suspect.measured.nonfinite_after and suspect.state.status not in ("nan", "inf")
    if not became:
        return None
    return Verdict("nonfinite_update", "info" if beside_a_broken_gradient(suspect) else "error", NO_OP)


def beside_a_broken_gradient(suspect: Suspect) -> bool:
    """Whether the step gave any variable a gradient that is not finite."""
    measured, entries = suspect.measured, suspect.topology.trace.variable_gradients

    def search() -> bool:
        reports = map(measured.of_variable, entries)
        return any(report is not None and (report.nan_count or report.inf_count) for report in reports)

    return measured.once("broken gradients", search)


def message_and_fix(group: Group) -> Text:
    became = counted(group, group.variables, NONFINITE_AFTER)
    if _squares_overflow(group):
        return Text(
            f"The update of this step made weights non-finite: {became}. Their gradients are finite, but so large "
            f"that their squares, which optimizers such as Adam compute, are not.",
            "Fix what makes the gradient that large; until then, clip it, `keras.optimizers.Adam(clipvalue=1.0)`.",
        )
    if (before := _overflowed_before(group)) is not None:
        largest, step = before
        return Text(
            f"The update of this step made weights non-finite: {became}. Their gradients are finite now, but in step "
            f"{step} an element was {largest:.2g}: its square, of which optimizers such as Adam keep an average, is "
            "above the largest float32. That average is infinite since then, and the updates are NaN.",
            f"Fix what made the gradient that large in step {step}; until then, clip it, "
            "`keras.optimizers.Adam(clipvalue=1.0)`.",
        )
    if beside_a_broken_gradient(group.suspect):
        return Text(
            f"The update of this step made weights non-finite from finite gradients: {became}. Other gradients are "
            f"not finite, and a division by the norm of all gradients, as in `global_clipnorm`, spreads that to these "
            "weights.",
            "Fix what breaks those gradients; there is nothing else to fix here.",
        )
    half = any(group.trace.variables[variable].dtype == "float16" for variable in group.variables)
    fix = (
        'Keep the weights in float32, `keras.config.set_dtype_policy("mixed_float16")`, or give the optimizer '
        "an epsilon that float16 can hold: `keras.optimizers.Adam(epsilon=1e-4)`."
        if half
        else "Lower the learning rate, and check the values by which the optimizer divides, such as its `epsilon` or "
        "a clipping norm."
    )
    return Text(
        f"The update of this step made weights non-finite from finite gradients: {became}.",
        fix,
    )


def _squares_overflow(group: Group) -> bool:
    """Whether every gradient has an element whose square is above the largest float32."""
    measured = group.suspect.measured
    entries = [entry for entry in group.trace.variable_gradients if entry.variable in group.variables]
    reports = [report for entry in entries if (report := measured.of_variable(entry)) is not None]
    return bool(reports) and all(report.max_abs > SQUARE_OVERFLOWS for report in reports)


def _overflowed_before(group: Group) -> tuple[float, int] | None:
    """The largest element of an earlier gradient, and its step; None unless each variable got one whose square is above
    the largest float32: averages of squares are infinite from then on."""
    before = [group.suspect.measured.largest_before(variable) for variable in group.variables]
    return max(before) if before and all(largest > SQUARE_OVERFLOWS for largest, _ in before) else None


CAUSE = Cause(
    name="nonfinite_update",
    meaning="the gradient is finite, but the weights are not finite after the step",
    severity="error",
    fix="a lower learning rate, a larger epsilon",
    text=message_and_fix,
    plight="non-finite values",
    without_op="the update of this step is the cause",
    told_at_once=True,
)
