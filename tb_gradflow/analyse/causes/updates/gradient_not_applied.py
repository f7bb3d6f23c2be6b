"""The variable gets a gradient, and nothing changes it."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.over_time.plateau import Rest
from tb_gradflow.analyse.over_time.unmoved import SURE_FROM
from tb_gradflow.analyse.step.measured import Measured, is_zero
from tb_gradflow.analyse.step.movement import Moved, movement_of
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text

# Types of weights with so few digits that small steps are rounded away.
_COARSE = ("float16", "bfloat16")

# Of the elements with a gradient so many stand still, or it is no story.
_MANY = 0.5


def rule(suspect: Suspect) -> Verdict | None:
    """A warning where all that a loss was differentiated by stands still, in enough steps; where a part of it does,
    somebody may hold it still on purpose, by a rate of zero or a bound."""
    standstill, variable = suspect.measured.standstill, suspect.state.variable
    if variable not in standstill or _is_part_of_inner_gradient(suspect):
        return None
    sure = standstill[variable] >= SURE_FROM and whole_loss_stands(suspect)
    return Verdict("gradient_not_applied", "warning" if sure else "info", NO_OP)


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


def message_and_fix(group: Group) -> Text:
    """Of a few steps it may be that gradients are summed up over more; of a part of a loss, that it is meant."""
    moved = movement_of(group.suspect.measured, group.variables[0])
    if moved is not None and (text := _held_by(group, moved)) is not None:
        return text
    if group.suspect.measured.rest is not None:
        return _rests(group, group.suspect.measured.rest)
    steps = min(group.suspect.measured.standstill[variable] for variable in group.variables)
    told = f" and never {'changes' if len(group.variables) == 1 else 'change'}: none of the {steps} recorded steps has "
    what = "{they_get} a gradient{line}" + told + "changed {them}, "
    apply = (
        "Pass it to an optimizer together with its variables, `optimizer.apply_gradients(zip(gradients, variables))`, "
        "in every step. If you already do, check the learning rate of that optimizer, and what clips the gradient."
    )
    if not whole_loss_stands(group.suspect):
        return Template(
            what + "while others that learn from the same loss have changed.",
            "Nothing to fix if {names} should not change, because of a learning rate of zero or a bound. Otherwise: "
            + apply[0].lower()
            + apply[1:],
        )(group)
    if group.verdict.severity == "info":
        return Template(
            what + "while others have changed. Where gradients are accumulated over several steps, this may be "
            "intended.",
            "Check again a few steps later. " + apply,
        )(group)
    return Template(what + "while others have changed.", apply)(group)


def _held_by(group: Group, moved: Moved) -> Text | None:
    """What holds the variables still in this very step, as it was measured; `None` if that does not show."""
    name = moved.optimizer.type
    if moved.optimizer.scheduled and group.suspect.measured.rest is not None:
        return None
    if moved.rate == 0 and moved.stands_still:
        optimizer = "model.optimizer" if _is_applied_by_keras(group) else "optimizer"
        return Template(
            "{they_get} a gradient{line}, but "
            + f"{name} does not move {{them}}: its learning rate is 0 in this step.",
            "Nothing to fix if the schedule starts or ends at 0."
            if moved.optimizer.scheduled
            else f"Set a learning rate: `{optimizer}.learning_rate.assign(1e-3)`, or `keras.optimizers.{name}(1e-3)`.",
        )(group)
    dtype = group.trace.variables[group.variables[0]].dtype
    if moved.rounded and moved.rounded >= moved.unmoved / 2:
        return Template(
            "{they_get} a gradient{line}, but "
            + f"{moved.rounded} of {moved.size} elements do not move: with a learning rate of "
            f"{moved.rate:.2g} the update is smaller than the spacing of `{dtype}` values there.",
            "Keep the weights in float32 and compute in half precision, `keras.mixed_precision.set_global_policy("
            '"mixed_bfloat16")`.'
            if dtype in ("float16", "bfloat16")
            else "Nothing to fix if the training is at its end; otherwise, use a larger learning rate.",
        )(group)
    if moved.stands_still and moved.optimizer.clips and moved.rate:
        return Template(
            "{they_get} a gradient{line}, but " + f"{name} does not move {{them}}: it clips gradients with "
            f"`{moved.optimizer.clips}`, and what remains of them is rounded away.",
            f"Clip less: `{moved.optimizer.clips.partition('=')[0]}=1.0`.",
        )(group)
    return None


def _rests(group: Group, rest: Rest) -> Text:
    """Where nothing has changed from the beginning the gradients are lost on their way; where something has, the rate
    has come to zero."""
    if rest.moved:
        return Template(
            "{they_get} a gradient{line}, but no variable changes any more: none has changed in the "
            f"{rest.steps} recorded steps from {rest.since} to {rest.until}.",
            "Check the learning rate in these steps. A schedule may have decayed to zero: "
            "`decay_steps` counts steps, not epochs."
            + ("" if rest.sure else " Nothing to fix if the training is at its end."),
        )(group)
    early = "Nothing to fix if gradients are accumulated over more steps, or the learning rate starts at zero. "
    keras = (
        "Check the learning rate, `model.optimizer.learning_rate`: is it zero, or set to zero by a schedule or a "
        "callback? Then check what clips the gradients, such as `clipnorm`."
    )
    own = (
        "Pass the gradients to an optimizer, `optimizer.apply_gradients(zip(gradients, variables))`. If you already "
        "do, check what happens to them before that, and the learning rate. In your own optimizer, `v = v - rate * "
        "gradient` creates a tensor and leaves the variable unchanged: use `v.assign_sub(rate * gradient)`."
    )
    return Template(
        "{they_get} a gradient{line}, but no variable has ever changed: "
        f"none of the {rest.steps} recorded steps, up to step {rest.until}, has changed one.",
        ("" if rest.sure else early) + (keras if _is_applied_by_keras(group) else own),
    )(group)


def _is_applied_by_keras(group: Group) -> bool:
    """Whether no line of the user's requests the gradient of a loss that Keras computes: Keras gives it to the
    optimizer then."""
    target = group.trace.targets[group.suspect.target] if group.suspect.target >= 0 else None
    if target is None or target.source is not None or target.op < 0:
        return False
    return group.trace.ops[target.op].name.startswith("compile_loss/")


CAUSE = Cause(
    name="gradient_not_applied",
    meaning="it gets a gradient in step after step, but no recorded step, nor any step in between, has changed it, "
    "while others change. A warning from four such steps on if this is true of everything that one loss was "
    "differentiated by; otherwise info, as it may be held fixed on purpose. Or no variable changes at all, from the "
    "start or any more, as with a schedule that has decayed to zero: a warning from 64 steps on if that is more than "
    "half of the run so far and gradients are about as large as at the start, otherwise info. `explain`, which sees "
    "one step, does not report it",
    severity="warning, info",
    fix="pass the gradient to an optimizer, together with its variables",
    text=message_and_fix,
    plight="a gradient that is not applied",
    without_op="no recorded step{since} has changed {them}",
    shows_request=True,
    told_at_once=True,
)
