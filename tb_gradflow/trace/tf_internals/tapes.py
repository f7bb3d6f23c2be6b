"""Requests to a tape: whether other tapes record them, and the result as a list."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.eager import record


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
