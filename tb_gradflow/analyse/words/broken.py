"""Phrases of several causes about a value that is not finite."""

from __future__ import annotations

from tb_gradflow.analyse.step.birth import is_nan, values_of
from tb_gradflow.analyse.words.names import Group, namespace

BROKEN = "{plight}: "
"""How messages about what is not finite begin."""


def logsumexp(group: Group) -> str:
    return "keras.ops.logsumexp" if namespace(group) == "keras.ops" else "tf.reduce_logsumexp"


def is_undefined(group: Group) -> bool:
    """Whether the value itself was NaN: the loss is NaN, and the function is finite where its derivative is not; or
    the loss is NaN and the gradient is not."""
    suspect = group.suspect
    if group.op is None or suspect.measured.loss_is_finite(suspect.target):
        return False
    values = values_of(suspect.measured)
    made = values.outputs(group.culprit) if values is not None else []
    if made:
        return any(map(is_nan, made))
    hidden = suspect.state.status not in ("nan", "inf")
    return hidden or (group.op.type in ("Sqrt", "Pow") and suspect.measured.loss_is_nan(suspect.target))
