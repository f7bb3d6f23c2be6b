"""A vector whose norm is almost zero is divided by its norm."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.edits.not_finite import larger_epsilon
from tb_gradflow.analyse.evidence.gradient_sizes import SINGLE_DECADES, course_of
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.words.fields import SIZE, Template


def rule(suspect: Suspect) -> Verdict | None:
    """`l2_normalize` of a zero vector multiplies by one over the root of its epsilon."""
    growth, place = min((share.least for share in course_of(suspect).values()), default=(0.0, -1))
    if growth > -SINGLE_DECADES:
        return None
    op = suspect.topology.trace.ops[place]
    by_root = any(suspect.type_of(edge.op) == "Rsqrt" for edge in op.inputs if edge.op >= 0)
    normalises = op.type == "Rsqrt" or by_root or "normalize" in (op.api or "")
    return Verdict("normalise_zero_vector", "warning", place) if normalises else None


CAUSE = Cause(
    name="normalise_zero_vector",
    meaning="the largest element is above 1e4, and a division by the norm of a vector adds four orders of magnitude to "
    "it",
    severity="warning",
    fix="a larger epsilon",
    text=Template(
        SIZE + "{op} divides by the norm of a vector that is nearly zero.",
        "Use a larger epsilon: `tf.math.l2_normalize({x}, axis=-1, epsilon=1e-3)`.",
    ),
    edits=(larger_epsilon,),
    quotes=("Use a larger epsilon: ",),
)
