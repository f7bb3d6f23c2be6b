"""Gradients that arrive, and of which nothing or next to nothing is applied."""

from __future__ import annotations

import math

from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.over_time.unmoved import SURE_FROM
from tb_gradflow.analyse.step.measured import Measured, is_zero
from tb_gradflow.analyse.step.movement import movement_of
from tb_gradflow.record.schema import Trace

# What Keras's `LossScaleOptimizer` calls its variable.
_SCALE = "dynamic_scale"
# Less does not keep float16 from underflow.
_SMALLEST_SCALE = 8


# Types of weights with so few digits that small steps are rounded away.
_COARSE = ("float16", "bfloat16")

# Of the elements with a gradient so many stand still, or it is no story.
_MANY = 0.5


def rate_of_zero(suspect: Suspect) -> Verdict | None:
    """The optimizer was given a gradient, and its learning rate is exactly zero. A schedule may begin or end there: of
    one that stays there the steps before tell more."""
    moved = movement_of(suspect.measured, suspect.state.variable)
    if moved is None or moved.rate != 0 or not moved.stands_still or moved.optimizer.accumulates > 1:
        return None
    if moved.optimizer.scheduled and suspect.measured.rest is not None:
        return None
    return Verdict("gradient_not_applied", "info" if moved.optimizer.scheduled else "warning", NO_OP)


def below_resolution(suspect: Suspect) -> Verdict | None:
    """Most elements stand still because rate times gradient is smaller than the spacing of numbers there.

    A warning in half precision; near its end every training comes to that.
    """
    moved = movement_of(suspect.measured, suspect.state.variable)
    if moved is None or not moved.rounded or suspect.measured.is_learned(suspect.target):
        return None
    if moved.rounded < _MANY * (moved.size - moved.zeros):
        return None
    coarse = suspect.topology.trace.variables[suspect.state.variable].dtype in _COARSE
    return Verdict("gradient_not_applied", "warning" if coarse else "info", NO_OP)


def clipped_away(suspect: Suspect) -> Verdict | None:
    """No element moves, the rate is not zero, and the optimizer clips gradients."""
    moved = movement_of(suspect.measured, suspect.state.variable)
    if moved is None or not moved.stands_still or not moved.rate or not moved.optimizer.clips:
        return None
    if moved.optimizer.scaled and _is_any_not_finite(suspect.measured):
        return None  # the step was skipped
    return None if moved.optimizer.accumulates > 1 else Verdict("gradient_not_applied", "warning", NO_OP)


def _is_any_not_finite(measured: Measured) -> bool:
    """Whether some variable's gradient holds NaN or infinities: who scales a loss skips such a step as a whole."""
    gradients = map(measured.of_variable, measured.topology.trace.variable_gradients)
    return any(each is not None and bool(each.nan_count or each.inf_count) for each in gradients)


def gradient_not_applied(suspect: Suspect) -> Verdict | None:
    """A warning where all that a loss was differentiated by stands still, in enough steps; where a part of it does,
    somebody may hold it still on purpose, by a rate of zero or a bound."""
    standstill, variable = suspect.measured.standstill, suspect.state.variable
    if variable not in standstill or _is_part_of_inner_gradient(suspect):
        return None
    sure = standstill[variable] >= SURE_FROM and whole_loss_stands(suspect)
    return Verdict("gradient_not_applied", "warning" if sure else "info", NO_OP)


def nothing_applied(suspect: Suspect) -> Verdict | None:
    """The same where no variable changes at all: a warning in the better part of a run, while gradients are about as
    large as in the beginning."""
    rest, gradient = suspect.measured.rest, suspect.state.gradient
    if rest is None or gradient is None or is_zero(gradient) or _is_part_of_inner_gradient(suspect):
        return None
    return Verdict("gradient_not_applied", "warning" if rest.sure else "info", NO_OP)


def whole_loss_stands(suspect: Suspect) -> bool:
    """Whether no variable changes that the same loss gives a gradient."""
    measured, trace = suspect.measured, suspect.topology.trace

    def search() -> bool:
        return all(
            entry.variable in measured.standstill
            for entry in trace.variable_gradients
            if entry.target == suspect.target
            and trace.variables[entry.variable].trainable
            and (gradient := measured.of_variable(entry)) is not None
            and not is_zero(gradient)
        )

    return measured.once(("stands", suspect.target), search)


def loss_not_scaled(suspect: Suspect) -> Verdict | None:
    """The optimizer divides gradients by the scale of a loss that nobody has multiplied with it."""
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


def _is_part_of_inner_gradient(suspect: Suspect) -> bool:
    """Whether another loss is made of this gradient: images are learned by the gradients that they give a network, and
    the network is not."""
    topology, measured = suspect.topology, suspect.measured
    behind = measured.once(
        "inner gradients",
        lambda: topology.leading_to({place for place, op in enumerate(topology.trace.ops) if op.backward}),
    )
    arrives = topology.gradient(suspect.target).hops
    return any(reader in behind and arrives[reader] >= 0 for reader in topology.readers[suspect.state.variable])
