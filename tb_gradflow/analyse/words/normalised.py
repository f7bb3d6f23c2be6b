"""Words for what is normalised over a single element."""

from __future__ import annotations

from tb_gradflow.analyse.words.fields import SIZE, ZERO, Template
from tb_gradflow.analyse.words.names import Group, Text, Writer


def degenerate(group: Group) -> Text:
    """Of a batch of one, or of a vector of one number."""
    if group.op is not None and group.op.type in ("Mul", "RealDiv", "Div") and not _is_in_a_layer_for_it(group):
        return Template(
            SIZE + "{op} divides a vector of one number by its own length: that makes 1 or -1 of whatever comes in.",
            'Compare the number itself, for example with `loss="mse"`, or normalise over an axis with several entries.',
        )(group)
    return Template(
        ZERO + "{op} normalises over a single element, and the result is the same whatever comes in.",
        "Use a larger batch, or `keras.layers.LayerNormalization()`."
        if _is_over_the_batch(group)
        else "Leave the normalisation out here, or normalise over an axis with several entries.",
    )(group)


def _is_in_a_layer_for_it(group: Group) -> bool:
    name = group.op.name if group.op is not None else ""
    return any(each.type.endswith("Normalization") and name.startswith(f"{each.scope}/") for each in group.trace.layers)


def _is_over_the_batch(group: Group) -> bool:
    """Whether the single element is the only example of the batch, as far as the shape of what goes in tells."""
    ops = group.trace.ops
    edge = next((each for each in group.op.inputs if each.op >= 0), None) if group.op is not None else None
    shape = ops[edge.op].outputs[edge.output].shape if edge is not None else None
    return not shape or shape[0] in (1, -1)


WRITERS: dict[str, Writer] = {"degenerate_normalisation": degenerate}
