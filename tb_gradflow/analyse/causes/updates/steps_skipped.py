"""A loss scale that skips one step after another."""

from __future__ import annotations

from collections.abc import Iterator

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.step.measured import Measured
from tb_gradflow.record.report import Finding

# Keras and tf_keras begin with 2 ** 15 and halve the scale in each step that they skip: after so many, it is one.
_FROM_DEFAULT = 15


def findings_of_skipped(measured: Measured) -> Iterator[Finding]:
    """About all variables of the optimizer, in a training."""
    trace, skipped = measured.topology.trace, measured.skipped
    if skipped is None or skipped.steps <= _FROM_DEFAULT:
        return
    variables = [each.variable for each in trace.movements if each.optimizer == skipped.optimizer]
    until = skipped.since + skipped.steps - 1
    began = skipped.scale * 2.0 ** (skipped.steps - 1)
    if skipped.scale > 1:
        why = f"The loss scale is still {skipped.scale:.2g} in step {until}, and halved in each of them"
        why += f"; it was {began:.2g} in the first." if began < float("inf") else "."
        fix = "Begin with a smaller scale, `keras.optimizers.LossScaleOptimizer(optimizer, initial_scale=2.0**15)`."
    else:
        why = f"The loss scale has come down to {skipped.scale:.2g}, so it is not the reason: without it, the gradient "
        why += "is not finite either."
        fix = "Find out where the gradient stops being finite: see the other findings of this step."
    yield Finding(
        cause=CAUSE.name,
        severity="warning",
        variables=tuple(trace.variables[each].name for each in variables),
        op=None,
        source=None,
        message=f"{trace.optimizers[skipped.optimizer].type} has applied no update in the {skipped.steps} steps from "
        f"{skipped.since} to {until}: in each of them, a gradient was not finite, so that the loss scaling skipped it. "
        f"{why}",
        fix=fix,
        target=0 if trace.targets else -1,
        culprit=-1,
        path=(),
        began=skipped.since if skipped.since < until else None,
    )


CAUSE = Cause(
    name="steps_skipped",
    meaning="loss scaling has skipped more than 15 steps in a row, up to this one. The scale of Keras begins with "
    "32768 and is halved in each such step, so that it would be one by then",
    severity="warning",
    fix="a smaller `initial_scale`",
    plight="no update",
    without_op="the loss scaling skips one step after another",
    headline="The loss scaling skips one step after another.",
)
