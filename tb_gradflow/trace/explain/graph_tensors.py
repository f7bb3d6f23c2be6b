"""Tells what is explained by `graph_v1` from what is explained by this room."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def is_graph_tensor(value: Any) -> bool:
    """Whether a value is a tensor of a graph, rather than a known number."""
    return isinstance(value, tf.Tensor) and not isinstance(value, tf.__internal__.EagerTensor)
