"""The optimizer divides by a loss scale, but the loss was not multiplied by it."""

from __future__ import annotations

import math

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.record.schema import Trace

# The name of the variable of Keras's `LossScaleOptimizer`.
_SCALE = "dynamic_scale"

# A smaller scale does not keep float16 from underflowing.
_SMALLEST_SCALE = 8


def rule(suspect: Suspect) -> Verdict | None:
    """The optimizer divides gradients by a loss scale by which the loss was not multiplied."""
    trace, entry = suspect.topology.trace, suspect.state.entry
    if not trace.unscaled or entry is None or suspect.measured.once("by hand", lambda: _may_be_scaled_by_hand(trace)):
        return None
    return Verdict("loss_not_scaled", "warning", NO_OP)


def _may_be_scaled_by_hand(trace: Trace) -> bool:
    """Scales are powers of two, so that nothing is rounded, or the optimizer's own variable."""
    return any(
        (op.reads is not None and trace.variables[op.reads].name.endswith(_SCALE))
        or (op.type == "Mul" and any(_may_be_scale(each.value) for each in op.constants))
        for op in trace.ops
    )


def _may_be_scale(number: float) -> bool:
    return number >= _SMALLEST_SCALE and math.frexp(number)[0] == 0.5


message_and_fix = Template(
    "{they_get} a gradient{line}, but the optimizer divides it by a loss scale, and the loss was never multiplied by "
    "that scale. `LossScaleOptimizer`, which `compile` wraps around an optimizer under the policy `mixed_float16`, "
    "starts at 32768 and doubles the scale every 2000 steps: the gradient that is left hardly moves {them}. Adam "
    "compensates for that only while this gradient is larger than its epsilon.",
    "Inside the tape, compute `scaled = optimizer.scale_loss(loss)`, then request `tape.gradient(scaled, variables)`, "
    "and report `loss` as before; in your own `train_step`, use `self.optimizer.scale_loss(loss)`.",
)


CAUSE = Cause(
    name="loss_not_scaled",
    meaning="the optimizer divides gradients by a loss scale (Keras 3: `LossScaleOptimizer`, which `compile` wraps "
    "around an optimizer under `mixed_float16`, or `loss_scale_factor`), but the step never called `scale_loss`. Not "
    "reported where the loss may be scaled by hand: by the optimizer's own variable, or by a power of two",
    severity="warning",
    fix="`scaled = optimizer.scale_loss(loss)` inside the tape, and `tape.gradient(scaled, ...)`",
    text=message_and_fix,
    plight="a gradient that is scaled down",
    without_op="the optimizer divides by a loss scale, but the loss{line} was not multiplied by it",
    shows_request=True,
    told_at_once=True,
)
