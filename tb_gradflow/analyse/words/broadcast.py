"""Words for labels that a loss compares with every prediction."""

from __future__ import annotations

from tb_gradflow.analyse.words.fields import Template
from tb_gradflow.analyse.words.names import Group, Text, Writer


def labels_broadcast(group: Group) -> Text:
    shape = group.op.outputs[0].shape if group.op is not None and group.op.outputs else None
    told = ", ".join("batch" if size < 0 else str(size) for size in shape or ())
    return Template(
        "{they_get} a gradient, and it teaches the mean of all labels: {op} makes a difference of the shape "
        f"[{told}], every prediction beside every label, because one of the two has the shape [batch, 1] and the other "
        "[batch].",
        "Give both the same shape before they are compared, `y = tf.reshape(y, tf.shape(prediction))`; functions of "
        "`keras.losses` do that themselves in Keras 3.",
    )(group)


WRITERS: dict[str, Writer] = {"labels_broadcast": labels_broadcast}
