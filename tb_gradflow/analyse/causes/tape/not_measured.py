"""No step was completed, so nothing was measured."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.step.not_computed import inverting_ops
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, called, place_of
from tb_gradflow.analyse.words.phrases import failure


def rule(suspect: Suspect) -> Verdict | None:
    """The structure lets the gradient pass, but no step was completed that could show its size."""
    return Verdict("not_measured", "warning")


def gradient_failed(suspect: Suspect) -> Verdict | None:
    """The tape recorded the path, but computing the gradient raised an error, for example for a matrix without an
    inverse."""
    entry = suspect.state.entry
    if entry is None or entry.outcome != "error" or not suspect.topology.trace.failure:
        return None
    singular = next(iter(inverting_ops(suspect.topology, suspect.target)), -1)
    return Verdict("degenerate_decomposition" if singular >= 0 else "not_measured", "error", singular)


def message_and_fix(group: Group) -> Text:
    """Contains the error, if it was raised while the gradient was computed."""
    if group.verdict.severity == "error":
        where = "the gradient function of {op}" if group.culprit >= 0 else "computing it{line}"
        error = failure(group) or "an error"
        return Template(
            f"{{they_get}} no gradient: {where} raises {error if error[-1] in '.…' else error + '.'}",
            "Give {fn} inputs and arguments for which TensorFlow can compute the gradient, or give it a gradient with "
            "`tf.custom_gradient`."
            if group.culprit >= 0
            else "Mend the line that raises it: the last one of yours in the traceback of the program. For a compiled "
            "function, `tf.config.run_functions_eagerly(True)` shows it.",
        )(group)
    if group.trace.raised:
        raised = group.trace.raised[0]
        where = f"{called(group.trace, raised.op)}{place_of(group.trace, raised.op)}" if raised.op >= 0 else "the step"
        text = Template(
            f"Not verified: no step was completed, so the gradient of {{names}} was not measured: {where} raises ",
            "Fix what raises the error, and run a step again.",
        )(group)
        return Text(f"{text.message}{raised.error.removesuffix('.')}.", text.fix)
    return Template(
        "Not verified: no step was completed, so the gradient of {names} was not measured. The graph alone shows no "
        "problem.",
        "Run one complete step, and check what it raises"
        + (": `model.train_on_batch(x, y)`." if any(each.tracked for each in group.trace.variables) else "."),
    )(group)


CAUSE = Cause(
    name="not_measured",
    meaning="no step was completed, and the graph alone shows no problem: nothing is verified; or computing the "
    "gradient raised an error, which is told",
    severity="warning; error if computing the gradient raised one",
    fix="run one complete step",
    text=message_and_fix,
    told_at_once=True,
)
