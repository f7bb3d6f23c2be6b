"""The variable is used in a branch that this step did not take."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.bodies import loop_in, unrecorded_before
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.graph.op_sets import BRANCHES, CHOICES, is_float
from tb_gradflow.analyse.step.measured import is_zero
from tb_gradflow.analyse.words.fields import SIZE, Template
from tb_gradflow.analyse.words.names import Group, Text


def rule(suspect: Suspect) -> Verdict | None:
    """The branch of a `tf.cond` that this step skipped, or the side of a `tf.where` that it never chose."""
    return Verdict("branch_not_taken", "info") if suspect.op.type in BRANCHES else None


def loop_not_entered(suspect: Suspect) -> Verdict | None:
    """A loop that ran no iteration in this step: its initial values do get a gradient, and the values used in its body
    do not."""
    loop = loop_in(suspect, unrecorded_before(suspect))
    return Verdict("branch_not_taken", "info", loop) if loop >= 0 and _begins_with_gradient(suspect, loop) else None


def _begins_with_gradient(suspect: Suspect, loop: int) -> bool:
    starts = [edge.op for edge in suspect.topology.trace.ops[loop].inputs if edge.input == 0 and edge.op >= 0]
    gradients = [suspect.measured.of_op(suspect.target, op) for op in starts]
    return any(gradient is not None and not is_zero(gradient) for gradient in gradients)


def branch_taken_without_it(suspect: Suspect) -> Verdict | None:
    """Only the branch that a `tf.cond` did not take in this step uses the variable.

    A `tf.cond` without a floating-point result selects nothing that could enter a loss: it is an assertion or a
    summary.
    """
    branches = suspect.culprit >= 0 and suspect.op.type in ("If", "StatelessIf")
    skipped = branches and any(is_float(tensor.dtype) for tensor in suspect.op.outputs)
    return Verdict("branch_not_taken", "info") if skipped else None


def message_and_fix(group: Group) -> Text:
    if group.op is not None and "Relu" in group.op.type:
        return Template(
            SIZE + "only values that {op} lets through depend on {them}, and in this step all have the other sign.",
            "Nothing to fix if other batches have values of both signs.",
        )(group)
    if group.op is not None and group.op.type in ("While", "StatelessWhile"):
        return Template(
            SIZE + "{op} ran no iterations in this step, and only its body uses {them}.",
            "Nothing to fix if this depends on the data; otherwise, check the condition of the loop.",
        )(group)
    chooses = group.op is not None and group.op.type in CHOICES
    return Template(
        SIZE
        + (
            "{op} passes the gradient of each element only to the side that it selects, and in this step it selected "
            "the other side for every element that gets a gradient."
            if chooses
            else "{op} passes the gradient only to the branch that it takes, and in this step it did not take the "
            "branch that uses {them}."
        ),
        "Nothing to fix if this depends on the data; check other steps.",
    )(group)


CAUSE = Cause(
    name="branch_not_taken",
    meaning="the gradient becomes zero at an If or a `tf.where` and nowhere else, at a loop that ran no iterations, or "
    "at the half of a PReLU that no value of this step uses; or, in a step that runs eagerly, the variable is read "
    "only by the branch that `tf.cond` did not take",
    severity="info",
    fix="check other steps",
    text=message_and_fix,
    explains_one_path=True,
)
