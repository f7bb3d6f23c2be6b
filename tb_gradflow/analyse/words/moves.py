"""Words for variables that move although their gradient is exactly zero, and that stand still although it is not."""

from __future__ import annotations

from tb_gradflow.analyse.causes.standing import whole_loss_stands
from tb_gradflow.analyse.over_time.plateau import Rest
from tb_gradflow.analyse.step.measured import UPDATE_NORM, WEIGHT_NORM
from tb_gradflow.analyse.step.movement import Moved, movement_of, why_moved
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, Writer, quoted

# A decay takes the same share of every weight, up to the rounding of a norm in float32.
_SAME_SHARE = 1e-3

# Of weights that are not finite it says nothing what moves them; and what will learn from the next step on may move.
_NO_MATTER = ("nonfinite_weights", "nonfinite_update", "nonfinite_input", "zero_init_by_design")


def moved_anyway(group: Group) -> Text:
    """What moves the group's variables where no gradient does; empty if nothing moves them.

    Momentum hands on what earlier steps brought, a decay takes a share of the weight: of several variables the same.
    """
    measured = group.suspect.measured
    if group.verdict.cause in _NO_MATTER:
        return Text("", "")
    still_zero = [state.variable for state in group.states if state.status == "zero" and not state.penalised]
    moved = [variable for variable in still_zero if measured.moved(variable)]
    if not moved or measured.variables is None:
        return Text("", "")
    names = [group.trace.variables[variable].name for variable in moved]
    they, them = ("It moves", "it") if len(moved) == len(group.states) == 1 else ("They move", "them")
    if len(moved) < len(group.states):
        they = f"{quoted(names)} {'moves' if len(moved) == 1 else 'move'}"
        them = "it" if len(moved) == 1 else "them"
    subject = "it is to" if them == "it" else "they are to"
    updates = [found for variable in moved if (found := movement_of(measured, variable)) is not None and found.moved]
    if updates:
        reasons = list(dict.fromkeys(map(why_moved, updates)))
        length = max(float(measured.variables[variable, UPDATE_NORM]) for variable in moved)
        return Text(
            f" {they} all the same, by {length:.2g} in this step: {'; '.join(reasons)}.",
            f" If {subject} stand still in such steps, apply the gradients of the other variables alone, "
            "`optimizer.apply_gradients([(g, v) for g, v in zip(gradients, variables) if v is not ...])`, or use plain "
            "`keras.optimizers.SGD()`, which remembers nothing.",
        )
    length = max(float(measured.variables[variable, UPDATE_NORM]) for variable in moved)
    share = _common_share(group, moved)
    if share:
        return Text(
            f" {they} all the same, each by {share:.2g} of its length in this step: that is a weight decay.",
            f" To keep {them} from this, `optimizer.exclude_from_weight_decay(var_names=[...])`.",
        )
    return Text(
        f" {they} all the same, by {length:.2g} in this step: not by this gradient, but by what the optimizer "
        "remembers of earlier ones (Adam, momentum), by a weight decay, or by code of your own.",
        f" Only if {subject} stand still in such steps: an optimizer without memory, `keras.optimizers.SGD()`.",
    )


def _common_share(group: Group, moved: list[int]) -> float:
    """The share of its length that every one of several variables has moved by; 0 if that differs."""
    numbers = group.suspect.measured.variables
    if numbers is None or len(moved) < 2:
        return 0.0
    sizes = [(float(numbers[variable, UPDATE_NORM]), float(numbers[variable, WEIGHT_NORM])) for variable in moved]
    if any(weight <= 0 for _, weight in sizes):
        return 0.0
    shares = [update / weight for update, weight in sizes]
    return shares[0] if max(shares) <= min(shares) * (1 + _SAME_SHARE) else 0.0


def stands_still(group: Group) -> Text:
    """Of a few steps it may be that gradients are summed up over more; of a part of a loss, that it is meant."""
    moved = movement_of(group.suspect.measured, group.variables[0])
    if moved is not None and (text := _held_by(group, moved)) is not None:
        return text
    if group.suspect.measured.rest is not None:
        return _rests(group, group.suspect.measured.rest)
    steps = min(group.suspect.measured.standstill[variable] for variable in group.variables)
    told = f" and never {'changes' if len(group.variables) == 1 else 'change'}: none of {steps} recorded steps has "
    what = "{they_get} a gradient{line}" + told + "changed {them}, "
    apply = (
        "Give it to an optimizer with the variables that it was asked for, `optimizer.apply_gradients(zip(gradients, "
        "variables))`, in every step; where that is done, look at that optimizer's learning rate, and at what clips it."
    )
    if not whole_loss_stands(group.suspect):
        return Template(
            what + "while others that learn from the same loss have changed.",
            "Nothing to repair if something holds {them} still on purpose: a rate of zero, a bound. If not: "
            + apply[0].lower()
            + apply[1:],
        )(group)
    if group.verdict.severity == "info":
        return Template(
            what + "while others have changed. Where gradients are summed up over several steps, that may be meant.",
            "Look again some steps on. " + apply,
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
            "{they_get} a gradient{line}, and "
            + f"{name} does not move {{them}}: its learning rate is 0 in this step.",
            "Nothing to repair if the schedule begins or ends with 0."
            if moved.optimizer.scheduled
            else f"Give it a rate: `{optimizer}.learning_rate.assign(1e-3)`, or `keras.optimizers.{name}(1e-3)`.",
        )(group)
    dtype = group.trace.variables[group.variables[0]].dtype
    if moved.rounded and moved.rounded >= moved.unmoved / 2:
        return Template(
            "{they_get} a gradient{line}, and "
            + f"{moved.rounded} of {moved.size} elements do not move: with a rate of "
            f"{moved.rate:.2g} the step is smaller than the spacing of `{dtype}` numbers there.",
            "Keep the weights in float32 and compute in half precision, `keras.mixed_precision.set_global_policy("
            '"mixed_bfloat16")`.'
            if dtype in ("float16", "bfloat16")
            else "Nothing to repair if the training is at its end; else a larger learning rate.",
        )(group)
    if moved.stands_still and moved.optimizer.clips and moved.rate:
        return Template(
            "{they_get} a gradient{line}, and " + f"{name} does not move {{them}}: it clips gradients with "
            f"`{moved.optimizer.clips}`, and what that leaves of them is rounded away.",
            f"Clip less: `{moved.optimizer.clips.partition('=')[0]}=1.0`.",
        )(group)
    return None


def _rests(group: Group, rest: Rest) -> Text:
    """Where nothing has changed from the beginning the gradients are lost on their way; where something has, the rate
    has come to zero."""
    if rest.moved:
        return Template(
            "{they_get} a gradient{line}, and nothing changes any more: no variable has in the "
            f"{rest.steps} recorded steps from {rest.since} to {rest.until}.",
            "Look at the learning rate in these steps. A schedule that has come to its end may give zero: "
            "`decay_steps` counts steps, not epochs."
            + ("" if rest.sure else " Nothing to repair if the training is at its end."),
        )(group)
    early = "Nothing to repair if gradients are summed up over more steps, or the rate begins at zero. "
    keras = (
        "Look at the learning rate, `model.optimizer.learning_rate`: zero, or a schedule or callback that gives zero? "
        "Then at what clips the gradients, such as `clipnorm`."
    )
    own = (
        "Give the gradients to an optimizer, `optimizer.apply_gradients(zip(gradients, variables))`; where that is "
        "done, look at what becomes of them before, and at the learning rate. In an optimizer of your own "
        "`v = v - rate * gradient` makes a tensor and leaves the variable as it is: `v.assign_sub(rate * gradient)`."
    )
    return Template(
        "{they_get} a gradient{line}, and no variable has ever changed: "
        f"none of {rest.steps} recorded steps, up to step {rest.until}, has changed one.",
        ("" if rest.sure else early) + (keras if _is_applied_by_keras(group) else own),
    )(group)


def _is_applied_by_keras(group: Group) -> bool:
    """Whether no line of the user's asks for the gradient of a loss that Keras computes: Keras gives it to the
    optimizer then."""
    target = group.trace.targets[group.suspect.target] if group.suspect.target >= 0 else None
    if target is None or target.source is not None or target.op < 0:
        return False
    return group.trace.ops[target.op].name.startswith("compile_loss/")


_not_scaled = Template(
    "{they_get} a gradient{line}, and the optimizer divides it by a loss scale with which the loss was never "
    "multiplied. `LossScaleOptimizer`, in which `compile` wraps an optimizer under the policy `mixed_float16`, begins "
    "with 32768 and doubles it every 2000 steps: what is left hardly moves {them}. Adam evens that "
    "out only as long as what is left is larger than its epsilon.",
    "Inside of the tape `scaled = optimizer.scale_loss(loss)`, then ask for the gradient of that, "
    "`tape.gradient(scaled, variables)`, and report `loss` as before; in a `train_step` of your own it is "
    "`self.optimizer.scale_loss(loss)`.",
)

WRITERS: dict[str, Writer] = {"gradient_not_applied": stands_still, "loss_not_scaled": _not_scaled}
