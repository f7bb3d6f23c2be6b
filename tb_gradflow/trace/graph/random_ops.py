"""Random ops of a graph: which are seeded, and which the recorder has replaced (`rng_sharing`)."""

from __future__ import annotations

from typing import Any

SEEDED = (
    "The step draws seeded random numbers from stateful TensorFlow ops (tf.random.* or Dropout of Keras 2). Each "
    "compiled function keeps its own generator for these, so recorded steps may draw different numbers than they "
    "would without the recorder. Keras's random layers, and keras.random with a SeedGenerator, are not affected."
)
"""The note if random numbers cannot be shared."""

REPLACED = "_gradflow_replaced"

PLACE_NAME = "tb_gradflow_place"


def is_place(variable: Any) -> bool:
    """Whether a variable is one of the recorder's own that hold a position in a random sequence."""
    return PLACE_NAME in str(variable.name)


def is_stateful(op: Any) -> bool:
    """Whether an op draws random numbers from its own generator, like those of `tf.random`, the samplers of
    `tf.nn.nce_loss` and `sampled_softmax_loss`, and `tf.image.sample_distorted_bounding_box`."""
    return bool(op.op_def.is_stateful and any(attribute.name in ("seed", "seed2") for attribute in op.op_def.attr))


def is_seeded(op: Any) -> bool:
    """Whether a random op gives the same numbers in each run of a program; otherwise no particular numbers are
    expected."""
    attributes = op.node_def.attr
    return not is_replaced(op.node_def) and bool(attributes["seed"].i or attributes["seed2"].i)


def is_replaced(node: Any) -> bool:
    """Whether the numbers of a node's random op are unused."""
    return REPLACED in node.attr
