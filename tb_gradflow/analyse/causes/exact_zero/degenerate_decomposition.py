"""A matrix decomposition where its derivative is not defined."""

from __future__ import annotations

from tb_gradflow.analyse.causes.cause import Cause
from tb_gradflow.analyse.evidence.suspects import Suspect, Verdict
from tb_gradflow.analyse.words.broken import BROKEN
from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text

_DECOMPOSITIONS = frozenset({"Svd", "SelfAdjointEigV2", "Eig", "Qr"})


def rule(suspect: Suspect) -> Verdict | None:
    """Singular or eigenvalues that repeat: their derivative divides by differences, and where these are zero
    TensorFlow answers zero."""
    return Verdict("degenerate_decomposition", "error") if suspect.op.type in _DECOMPOSITIONS else None


def message_and_fix(group: Group) -> Text:
    kind = group.op.type if group.op else ""
    if kind in ("SelfAdjointEigV2", "Svd", "Eig"):
        return Template(
            BROKEN + "some of the values that {op} computes are equal, and its derivative divides by their "
            "differences.",
            "Use only the singular values or eigenvalues in the loss, or separate them first: `{bx} + "
            "tf.linalg.diag(1e-3 * tf.range(n, dtype=tf.float32))`.",
        )(group)
    return Template(
        BROKEN + "the matrix given to {op} is singular, or nearly so, and has no inverse.",
        "Regularise the matrix: `{head}({bx} + 1e-4 * tf.eye(tf.shape({x})[-1]))`.",
    )(group)


CAUSE = Cause(
    name="degenerate_decomposition",
    meaning="the gradient becomes zero at an SVD or eigenvalue decomposition with repeated values; or NaN at a "
    "Cholesky factor or an inverse of a singular matrix",
    severity="error",
    fix="separate the values; add to the diagonal",
    text=message_and_fix,
)
