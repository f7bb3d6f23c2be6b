"""What an error of TensorFlow says: which op's gradient function raised it, or which index was outside of what it
indexes."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence

import tensorflow as tf
from tensorflow.python.eager import backprop

# What the kernels of TensorFlow say about an index.
_WITHIN = re.compile(r"(-?\d+)(?: which)? is (?:not in|out of range|outside the valid range of) \[0, ?(\d+)\)")
_INTO = re.compile(r"= \[([-\d, ]+)\] does not index into (?:param )?shape \[([\d, ]+)\]")
_ELEMENT = re.compile(r"element (-?\d+) in a list with (\d+) elements")
_ALL_LABELS = re.compile(r"Label values:((?: -?\d+)+)")


def differentiated(error: BaseException) -> str:
    """The type of the op; empty if no gradient function raised the error, or if that is not known."""
    calls = [
        frame
        for frame, _ in traceback.walk_tb(error.__traceback__)
        # TensorFlow's function that calls the gradient function of an op for a tape.
        if (frame.f_code.co_filename, frame.f_code.co_name) == (backprop.__file__, "_gradient_function")
    ]
    return str(calls[-1].f_locals.get("op_name", "")) if calls else ""


def is_index_outside(error: BaseException) -> bool:
    """Whether an op has raised because an index is outside of what it indexes."""
    return isinstance(error, tf.errors.OpError) and indices_outside(str(error.message))[1] >= 0


def indices_outside(said: str) -> tuple[Sequence[int], int]:
    """The indices that a message names, and the number of elements that they are to index; -1 if it names none."""
    if (found := _WITHIN.search(said) or _ELEMENT.search(said)) is not None:
        labels = _ALL_LABELS.search(said)
        named = [int(found[1]), *(map(int, labels[1].split()) if labels is not None else ())]
        return named, int(found[2])
    if (found := _INTO.search(said)) is not None:
        for index, size in zip(found[1].split(","), found[2].split(","), strict=False):
            if not 0 <= int(index) < int(size):
                return [int(index)], int(size)
    return (), -1
