"""Words for weights and batches that are NaN or infinite, or nothing but zeros: no op is to blame for that."""

from __future__ import annotations

from math import prod

from tb_gradflow.analyse.causes.not_finite import beside_a_broken_gradient
from tb_gradflow.analyse.causes.zero_input import zero_data
from tb_gradflow.analyse.over_time.onset import Onset
from tb_gradflow.analyse.step.broken_midstep import broken_meanwhile
from tb_gradflow.analyse.step.measured import NONFINITE_AFTER, NONFINITE_BEFORE
from tb_gradflow.analyse.words.fields import ZERO, fields
from tb_gradflow.analyse.words.names import Group, Text, Writer

# The root of the largest float32.
_SQUARE_OVERFLOWS = 1.8e19


def weights(group: Group) -> Text:
    measured = group.suspect.measured
    meanwhile = broken_meanwhile(measured, group.suspect.target)
    if meanwhile and not measured.nonfinite_weights(group.suspect.target):
        return Text(
            f"{fields(group)['plight']} because the loss is computed from weights that are not finite any more: an "
            f"update earlier in this step, for another loss, broke {_counted(group, meanwhile, NONFINITE_AFTER)}.",
            "Mend what breaks the gradient of those weights: nothing else is to be repaired here.",
        )
    bad = measured.nonfinite_weights(group.suspect.target) or tuple(sorted(measured.nonfinite_before))
    return Text(
        f"The weights were not finite before this step began: {_counted(group, bad, NONFINITE_BEFORE)}. Whatever is "
        f"computed from them is not finite either; nothing in this step is to blame.{_since(measured.onset)}",
        _from_there(measured.onset),
    )


def _since(onset: Onset | None) -> str:
    if onset is None:
        return ""
    if onset.recorded:
        return f" It began in step {onset.last}."
    if onset.last >= 0:
        return f" It began between the recorded steps {onset.last} and {onset.first}."
    return f" It began before the first recorded step, {onset.first}."


def _from_there(onset: Onset | None) -> str:
    if onset is not None and onset.findings:
        return f"Mend what happened in step {onset.last}, and start again from weights of before it."
    return (
        "Start again from finite weights, a checkpoint from before or a new model, and record every step, "
        "`GradFlowCallback(log_dir, update_freq=1)`, to see the one in which it begins."
    )


def update(group: Group) -> Text:
    became = _counted(group, group.variables, NONFINITE_AFTER)
    if _squares_overflow(group):
        return Text(
            f"The update of this step made weights that are not finite: {became}. Their gradients are finite, but so "
            "large that their squares are not, and optimizers such as Adam take them.",
            "Mend what makes the gradient that large; until then clip it, `keras.optimizers.Adam(clipvalue=1.0)`.",
        )
    if beside_a_broken_gradient(group.suspect):
        return Text(
            f"The update of this step made weights that are not finite, from gradients that are: {became}. The "
            "gradients of others are not: what divides by the norm of all, as `global_clipnorm` does, hands that on.",
            "Mend what breaks those gradients: nothing else is to be repaired here.",
        )
    half = any(group.trace.variables[variable].dtype == "float16" for variable in group.variables)
    fix = (
        'Keep the weights in float32, `keras.config.set_dtype_policy("mixed_float16")`, or give the optimizer '
        "an epsilon that float16 can hold: `keras.optimizers.Adam(epsilon=1e-4)`."
        if half
        else "Lower the learning rate, and look at what the optimizer divides by: its `epsilon`, its clipping."
    )
    return Text(
        f"The update of this step made weights that are not finite, from gradients that are: {became}.",
        fix,
    )


def _squares_overflow(group: Group) -> bool:
    """Whether every gradient has an element whose square is above the largest float32."""
    measured = group.suspect.measured
    entries = [entry for entry in group.trace.variable_gradients if entry.variable in group.variables]
    reports = [report for entry in entries if (report := measured.of_variable(entry)) is not None]
    return bool(reports) and all(report.max_abs > _SQUARE_OVERFLOWS for report in reports)


def _counted(group: Group, variables: tuple[int, ...], column: int, most: int = 3) -> str:
    numbers = group.suspect.measured.variables
    assert numbers is not None
    told = [
        f"`{group.trace.variables[each].name}` ({int(numbers[each, column])} of "
        f"{prod(group.trace.variables[each].shape)} numbers)"
        for each in variables[:most]
    ]
    more = len(variables) - most
    return ", ".join(told) + (f" and {more} more" if more > 0 else "")


def batch(group: Group) -> Text:
    [(first, _), *_] = group.suspect.measured.nonfinite_inputs
    x = first if first.isidentifier() else "x"
    return Text(
        f"{fields(group)['plight']}: {of_batch(group)[0].lower()}{of_batch(group)[1:]}",
        f"Clean the data before training: `{x} = np.nan_to_num({x})`, or leave those rows out, "
        f"`keep = np.isfinite({x}).reshape(len({x}), -1).all(axis=1)`.",
    )


def zeros(group: Group) -> Text:
    name = zero_data(group.suspect.measured)
    message = (
        "every number of `{name}` is zero in this batch, and with it the gradient of all that it is multiplied with."
    )
    return Text(
        (ZERO + message).format_map({**fields(group), "name": name}),
        f"Look at what is fed, `np.count_nonzero({name})`: integers that are divided by 255 twice, or cast after the "
        "division, are zeros, and so is a batch of nothing but padding.",
    )


def of_batch(group: Group) -> str:
    """What is wrong with the batch, as a sentence; empty if nothing is."""
    bad = group.suspect.measured.nonfinite_inputs
    told = [
        f"`{name}` holds "
        + " and ".join(f"{n} {word}" for n, word in ((r.nan_count, "NaN"), (r.inf_count, "Inf")) if n)
        for name, r in bad
    ]
    return f"In the batch {', '.join(told)}." if told else ""


WRITERS: dict[str, Writer] = {
    "nonfinite_weights": weights,
    "nonfinite_update": update,
    "nonfinite_input": batch,
    "zero_input": zeros,
}
