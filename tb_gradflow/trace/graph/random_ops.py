"""Random ops of a graph: which are seeded, and what the recorder has put in their place (`rng_sharing`)."""

from __future__ import annotations

from typing import Any

SEEDED = (
    "The step draws seeded random numbers from stateful TensorFlow ops (tf.random.* or Dropout of Keras 2). Each "
    "compiled function keeps its own generator for these, so recorded steps may draw different numbers than they "
    "would without the recorder. Keras's random layers, and keras.random with a SeedGenerator, are not affected."
)
"""What is told where random numbers cannot be shared."""

REPLACED = "_gradflow_replaced"

PLACE_NAME = "tb_gradflow_place"


def is_place(variable: Any) -> bool:
    """Whether a variable is one of those that hold a place, and none of the user's."""
    return PLACE_NAME in str(variable.name)


def is_seeded(op: Any) -> bool:
    """Whether a random op gives the same numbers in each run of a program; else nobody expects any."""
    attributes = op.node_def.attr
    return not is_replaced(op.node_def) and bool(attributes["seed"].i or attributes["seed2"].i)


def is_replaced(node: Any) -> bool:
    """Whether nobody takes the numbers of the random op that a node of a graph is."""
    return REPLACED in node.attr
