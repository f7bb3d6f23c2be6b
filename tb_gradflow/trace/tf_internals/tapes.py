"""Requests to a tape: whether other tapes record them, and the result as a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import record

REQUESTS = ("gradient", "jacobian", "batch_jacobian")
"""The methods of a tape that compute gradients."""


def is_watched_by_another(tape: Any) -> bool:
    """Whether a tape other than this one is recording: the request is then an inner gradient."""
    if not getattr(tape, "_recording", False):
        return bool(record.could_possibly_record())
    with tape.stop_recording():
        return bool(record.could_possibly_record())


def is_recorded(tape: Any) -> bool:
    """Whether the computation of the requested gradient is recorded: by an outer tape, or by the tape itself.

    The work of an inner tape is forward computation for the outer tape, and its later consumers are not known yet: it
    is not known whether measuring it changes the step. A tape whose gradient is requested inside its own `with`
    block stops recording there, unless it is persistent.
    """
    return bool(record.could_possibly_record()) if getattr(tape, "_persistent", True) else is_watched_by_another(tape)


def recorded_by(tape: Any, tensors: Sequence[Any]) -> list[bool]:
    """For each tensor, whether a tape, the only one that may be open, has recorded how it was computed."""
    is_open = getattr(tape, "_recording", False)
    if not is_open:
        pywrap_tfe.TFE_Py_TapeSetAdd(tape._tape._tape)
    try:
        return [bool(pywrap_tfe.TFE_Py_TapeSetShouldRecordBackprop([each])) for each in tensors]
    finally:
        if not is_open:  # the set of tapes holds a reference to each, which must not be dropped twice
            pywrap_tfe.TFE_Py_TapeSetRemove(tape._tape._tape)


def zeros_as_asked(ask: Any, asked: Any, target: Any, sources: Any) -> Any:
    """A tape's result for `sources`, with the zeros that it returns for missing gradients on request: TensorFlow makes
    them in the same way, after the gradients."""
    flat, found = tf.nest.flatten(sources), flat_gradients(asked)
    missing = [source for source, gradient in zip(flat, found, strict=True) if gradient is None]
    if not missing:
        return asked
    with tf.GradientTape() as empty:
        pass
    first = tf.nest.flatten(target)[0]
    zeros = iter(ask(empty, first, missing, first, tf.UnconnectedGradients.ZERO))
    return tf.nest.pack_sequence_as(sources, [next(zeros) if each is None else each for each in found])


def flat_sources(sources: Any) -> list[Any]:
    """`tf.nest.flatten`, with a ragged tensor replaced by the values that a tape tracks for it."""
    return [part for each in tf.nest.flatten(sources) for part in _parts(each)]


def flat_answers(gradients: Any, sources: Any) -> list[Any]:
    """The gradients of `sources`, one for each of `flat_sources`."""
    asked = zip(tf.nest.flatten(sources), flat_gradients(gradients), strict=True)
    return [
        part
        for source, gradient in asked
        for part in (_parts(gradient) if isinstance(source, tf.RaggedTensor) else [gradient])
    ]


def _parts(source: Any) -> list[Any]:
    return [source.flat_values] if isinstance(source, tf.RaggedTensor) else [source]


def with_zeros(gradients: Any, sources: Any) -> Any:
    """Gradients in the form of a tape that returns zeros for missing ones on request."""
    listed = zip(tf.nest.flatten(sources), flat_gradients(gradients), strict=True)
    filled = [_zeros(source) if gradient is None else gradient for source, gradient in listed]
    return tf.nest.pack_sequence_as(sources, filled)


def _zeros(source: Any) -> Any:
    return tf.zeros_like(source) if isinstance(source, tf.RaggedTensor) else tf.zeros(source.shape, source.dtype)


def flat_gradients(gradients: Any) -> list[Any]:
    """`tf.nest.flatten` that keeps None and does not split an IndexedSlices."""
    return list(tf.nest.flatten(gradients, expand_composites=False))
