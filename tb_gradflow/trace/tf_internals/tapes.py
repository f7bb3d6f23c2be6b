"""What a tape is asked for: whether others record it meanwhile, and the answer as a list."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.eager import record


def is_watched_by_another(tape: Any) -> bool:
    """Whether another tape than this one records: what is asked here is an inner gradient then."""
    if not getattr(tape, "_recording", False):
        return bool(record.could_possibly_record())
    with tape.stop_recording():
        return bool(record.could_possibly_record())


def is_recorded(tape: Any) -> bool:
    """Whether what the tape is asked for is recorded: by a tape around it, or by itself.

    What an inner tape makes is forward computation to the tape around it, and who will take it is not known yet:
    whether measuring it changes the step cannot be told. A tape that is asked inside of its own `with` stops there,
    unless it is persistent.
    """
    return bool(record.could_possibly_record()) if getattr(tape, "_persistent", True) else is_watched_by_another(tape)


def flat_sources(sources: Any) -> list[Any]:
    """`tf.nest.flatten`, with a ragged tensor as the values that a tape follows in its place."""
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
    """Gradients as a tape returns them that was asked for zeros in the place of those that are missing."""
    listed = zip(tf.nest.flatten(sources), flat_gradients(gradients), strict=True)
    filled = [_zeros(source) if gradient is None else gradient for source, gradient in listed]
    return tf.nest.pack_sequence_as(sources, filled)


def _zeros(source: Any) -> Any:
    return tf.zeros_like(source) if isinstance(source, tf.RaggedTensor) else tf.zeros(source.shape, source.dtype)


def flat_gradients(gradients: Any) -> list[Any]:
    """`tf.nest.flatten` that keeps None and does not take an IndexedSlices apart."""
    return list(tf.nest.flatten(gradients, expand_composites=False))
