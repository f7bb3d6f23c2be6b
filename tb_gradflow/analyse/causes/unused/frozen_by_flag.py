"""The variable has `trainable=False`."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.variables import trainable
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text

_STATISTICS = ("moving_", "running_", "ema", "average", "count", "seed", "total")


def rule(suspect: Suspect) -> Verdict | None:
    """No variable of the model is trainable, so the training trains nothing. At least one must be a weight matrix: a
    model with only random seeds and counters has nothing to train.
    """
    variables = [variable for variable in suspect.topology.trace.variables if variable.tracked]
    weights = any(len(variable.shape) >= 2 and variable.dtype.startswith("float") for variable in variables)
    nothing = bool(variables) and not any(variable.trainable for variable in suspect.topology.trace.variables)
    return Verdict("frozen_by_flag", "error") if nothing and weights else None


def held_by_container(suspect: Suspect) -> Verdict | None:
    """Its layer was made trainable after the model around it had been frozen, which has no effect in Keras 2."""
    held = suspect.topology.trace.variables[suspect.state.variable].held
    return Verdict("frozen_by_flag", "warning") if held else None


def frozen_alone(suspect: Suspect) -> Verdict | None:
    """A gradient was requested for a non-trainable weight that the loss depends on, and that the step itself does not
    update."""
    entry, topology = suspect.state.entry, suspect.topology
    variable = topology.trace.variables[suspect.state.variable]
    if entry is None or entry.outcome != "none" or not variable.dtype.startswith(("float", "bfloat")):
        return None
    kept_up = suspect.state.variable in topology.written
    named = any(word in variable.name for word in _STATISTICS)
    if kept_up or named or not topology.receives(suspect.state.variable, entry.target):
        return None
    return Verdict("frozen_by_flag", "info")


def message_and_fix(group: Group) -> Text:
    if group.verdict.severity == "warning":
        held = group.trace.variables[group.variables[0]].held
        return Template(
            "{they_are} not trained: "
            + ("its layer is" if len(group.variables) == 1 else "their layers are")
            + f" trainable, but not `{held}` around {{them}}, and Keras 2 trains nothing inside of a frozen model.",
            f"Set `trainable = True` for `{held}` itself, then freeze the layers in it that should stay as they are, "
            "and compile again.",
        )(group)
    if group.verdict.severity == "info":
        return Template(
            "{they_get} no gradient: a gradient was requested for {them}, but {they_have_flag} `trainable=False`.",
            "If {names} should be trained, set `tf.Variable(..., trainable=True)` or `layer.trainable = True`; "
            "otherwise, remove {them} from the sources of `tape.gradient`.",
        )(group)
    return Template(
        "Nothing is trained: "
        + ("all {count} variables" if len(group.variables) > 1 else "the only variable")
        + " of the model "
        + ("have" if len(group.variables) > 1 else "has")
        + " `trainable=False`.",
        "Set `model.trainable = True` before this training; Keras 3 reads the flag during training, not at `compile`.",
    )(group)


CAUSE = Cause(
    name="frozen_by_flag",
    meaning="the model has weights, but none is trainable; or a gradient was requested for a variable that is not "
    "trainable; or, in Keras 2, layers were made trainable inside of a model that stays frozen",
    severity="error; info for a single variable; warning for layers inside of a frozen model",
    fix="`trainable = True` before training",
    text=message_and_fix,
    told_at_once=True,
    edits=(trainable,),
)
