"""Variables that are not to be trained. Quiet, unless nothing at all is trained."""

from __future__ import annotations

from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict

_STATISTICS = ("moving_", "running_", "ema", "average", "count", "seed", "total")


def frozen_by_flag(suspect: Suspect) -> Verdict | None:
    """No variable of the model is trainable, so the training trains nothing.

    A weight matrix among them says that something could be: a model of random seeds and counters is no sign.
    """
    variables = [variable for variable in suspect.topology.trace.variables if variable.tracked]
    weights = any(len(variable.shape) >= 2 and variable.dtype.startswith("float") for variable in variables)
    nothing = bool(variables) and not any(variable.trainable for variable in suspect.topology.trace.variables)
    return Verdict("frozen_by_flag", "error") if nothing and weights else None


def frozen_alone(suspect: Suspect) -> Verdict | None:
    """A gradient was asked for a weight that is not to be trained, takes part in the loss like any other, and is not
    updated by the step itself."""
    entry, topology = suspect.state.entry, suspect.topology
    variable = topology.trace.variables[suspect.state.variable]
    if entry is None or entry.outcome != "none" or not variable.dtype.startswith(("float", "bfloat")):
        return None
    kept_up = any(op.writes == suspect.state.variable for op in topology.trace.ops)
    named = any(word in variable.name for word in _STATISTICS)
    if kept_up or named or not topology.receives(suspect.state.variable, entry.target):
        return None
    return Verdict("frozen_by_flag", "info")


def non_trainable_state(suspect: Suspect) -> Verdict | None:
    """Somebody asked for the gradient of moving statistics, and got none: harmless."""
    entry = suspect.state.entry
    asked = entry is not None and entry.outcome == "none"
    return Verdict("non_trainable_state", "info") if asked else None
