"""The variable gets a gradient, but nothing changes it."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.causes.updates.held import (
    deferred_of,
    how_deferred,
    why_held,
)
from tb_gradflow.analyse.evidence.requests import is_by_keras
from tb_gradflow.analyse.evidence.suspects import NO_OP, Suspect, Verdict
from tb_gradflow.analyse.over_time.plateau import Rest
from tb_gradflow.analyse.over_time.unmoved import SURE_FROM
from tb_gradflow.analyse.step.measured import is_zero
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.analyse.words.phrases import DECIDED_ONCE


def rule(suspect: Suspect) -> Verdict | None:
    """A warning if no variable of a loss changes in enough steps; if only some do not, they may be held fixed on
    purpose, by a learning rate of zero or a bound."""
    standstill, variable = suspect.measured.standstill, suspect.state.variable
    if variable not in standstill or _is_part_of_inner_gradient(suspect):
        return None
    sure = standstill[variable] >= SURE_FROM and whole_loss_stands(suspect)
    return Verdict("gradient_not_applied", "warning" if sure else "info", NO_OP, why_held(suspect))


def nothing_applied(suspect: Suspect) -> Verdict | None:
    """The same if no variable changes at all: a warning if this covers more than half of a run, and gradients are about
    as large as in the beginning."""
    rest, gradient = suspect.measured.rest, suspect.state.gradient
    if rest is None or gradient is None or is_zero(gradient) or _is_part_of_inner_gradient(suspect):
        return None
    return Verdict("gradient_not_applied", "warning" if rest.sure else "info", NO_OP, why_held(suspect))


def whole_loss_stands(suspect: Suspect) -> bool:
    """Whether none of the variables that get a gradient from the same loss changes."""
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
    """Whether another loss is computed from this gradient: in dataset distillation, images are trained by the gradients
    that they give a network, and the network is not trained."""
    topology, measured = suspect.topology, suspect.measured
    behind = measured.once(
        "inner gradients",
        lambda: topology.leading_to({place for place, op in enumerate(topology.trace.ops) if op.backward}),
    )
    arrives = topology.gradient(suspect.target).hops
    return any(reader in behind and arrives[reader] >= 0 for reader in topology.readers[suspect.state.variable])


def message_and_fix(group: Group) -> Text:
    """With few steps, gradients may be accumulated over more; if only some variables of a loss are affected, it may be
    intended."""
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


def _rests(group: Group, rest: Rest) -> Text:
    """If nothing has changed from the beginning, the gradients are not applied; if something has, the learning rate has
    become zero."""
    if rest.moved:
        return Template(
            "{they_get} a gradient{line}, but no variable changes any more: none has changed in the "
            f"{rest.steps} recorded steps from {rest.since} to {rest.until}.",
            "Check the learning rate in these steps. A schedule may have decayed to zero: `decay_steps` counts steps, "
            "not epochs." + ("" if rest.sure else " Nothing to fix if the training is at its end."),
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
    never = (
        "{they_get} a gradient{line}, and no variable has ever changed: "
        f"none of the {rest.steps} recorded steps up to step {rest.until} has changed one."
    )
    if rest.sure and (deferred := deferred_of(group.suspect)) is not None:
        told = ", and ".join(how_deferred(group, deferred))
        if deferred.condition_at is not None and not deferred.conditional:
            return Template(f"{never} {told[0].upper()}{told[1:]}.", DECIDED_ONCE)(group)
        return Template(
            f"{never} {told[0].upper()}{told[1:]}.",
            ("Check that the condition is met" if deferred.conditional else "Check that a step applies the sum")
            + (
                ", and that the sums are not set back to zero before they are applied: `list(sums)` holds the "
                "variables, not their values. Copy these, `[tf.identity(each) for each in sums]`."
                if deferred.summed
                else "."
            ),
        )(group)
    return Template(
        never,
        ("" if rest.sure else early) + (keras if is_by_keras(group.suspect) else own),
    )(group)


CAUSE = Cause(
    name="gradient_not_applied",
    meaning="it gets a gradient in every step, but no recorded step has changed it, nor any step in between, while "
    "others change. A warning after four such steps if this holds for all variables of one loss; otherwise info, as it "
    "may be held fixed on purpose. Or no variable changes at all, either from the beginning or from some step on, as "
    "with a schedule that has decayed to zero: a warning after 64 steps if these are more than half of the run so far "
    "and gradients are about as large as in the beginning, otherwise info. Or a single step shows what holds it fixed: "
    "a learning rate of zero, clipping to almost nothing, weights too coarse for the update, gradients that are "
    "accumulated over several steps, by the optimizer or by hand, an update under a condition, a constraint that "
    "undoes the update (a warning if this holds for all that the loss trains), an average of squares that has "
    "overflowed (a warning), an `assign` after the update (a warning if it assigns mostly another variable's value), "
    "the first steps of Adadelta, values so large that a hundred steps of Adam hardly change them",
    severity="warning, info",
    fix="pass the gradient to an optimizer, together with its variables",
    text=message_and_fix,
    plight="a gradient that is not applied",
    without_op="no recorded step{since} has changed {them}",
    shows_request=True,
    told_at_once=True,
)
