"""Steps that run eagerly and cannot be compiled: those that look at the numbers in a tensor with Python or NumPy."""

from __future__ import annotations

import re

import tensorflow as tf

HINT = (
    "tb_gradflow: `watch` compiles the step as `tf.function` does, and in there a tensor has no numbers that Python or "
    "NumPy could look at. Write that line with TensorFlow, or run the step eagerly: "
    "`tf.config.run_functions_eagerly(True)` before the training."
)

_WORDS = re.compile(
    r"symbolic `?tf\.Tensor|Tensor' object has no attribute '(numpy|item|tolist)'|, not '?(Symbolic)?Tensor\b"
)


def needs_numbers(error: Exception) -> bool:
    """Whether TensorFlow says that the step looks at the numbers of a tensor that is being traced."""
    told = isinstance(error, tf.errors.OperatorNotAllowedInGraphError)
    return told or _WORDS.search(str(error)) is not None
