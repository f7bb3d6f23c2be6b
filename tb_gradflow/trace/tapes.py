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


def flat_gradients(gradients: Any) -> list[Any]:
    """`tf.nest.flatten` that keeps None and does not take an IndexedSlices apart."""
    return list(tf.nest.flatten(gradients, expand_composites=False))
