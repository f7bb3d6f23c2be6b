"""The gradient would have to pass through a function that XLA compiles."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.settings import without_xla
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.step.not_computed import is_refused_by_xla, refused_op
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text
from tb_gradflow.analyse.words.phrases import failure


def rule(suspect: Suspect) -> Verdict | None:
    """Running the step failed when XLA had to compile the gradient of a function."""
    refused = is_refused_by_xla(suspect.topology, suspect.state.variable, suspect.target)
    return Verdict("xla_boundary", "error", refused_op(suspect.topology)) if refused else None


def message_and_fix(group: Group) -> Text:
    """Quotes TensorFlow's error, because XLA fails for different reasons."""
    return Template(
        "{they_get} no gradient: XLA cannot compile the gradient of a function with `jit_compile=True`{place}. "
        f"TensorFlow reports: {failure(group)}",
        "Remove `jit_compile=True` there, or compile the whole step including its tape, "
        "`@tf.function(jit_compile=True) def train_step(...)`; loops need `maximum_iterations`.",
    )(group)


CAUSE = Cause(
    name="xla_boundary",
    meaning="running the traced step failed in XLA, and the gradient has to pass through a function with "
    "`jit_compile=True`",
    severity="error",
    fix="compile the whole step, or nothing inside it",
    text=message_and_fix,
    edits=(without_xla,),
)
