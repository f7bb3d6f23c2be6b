"""Calls custom gradient functions in a way that the user's tapes do not record.

`record.stop_recording` would also stop the tapes that such a function opens itself, which would then return None: a
gradient that recomputes its forward pass, or solves for a fixed point, would appear to have none. So the tapes that are
open are closed for the call, and opened again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import tape

from tb_gradflow.trace.protection.living_objects import instances_of

T = TypeVar("T")


def untaped(function: Callable[..., T], *arguments: Any) -> T:
    """Calls the function while no tapes are open except those that it opens itself."""
    with _recording_allowed(), _closed(_open_here()):
        return function(*arguments)


@contextlib.contextmanager
def _recording_allowed() -> Iterator[None]:
    """While the context is open, tapes of this thread record, though `record.stop_recording` is around it."""
    is_stopped = pywrap_tfe.TFE_Py_TapeSetIsStopped()
    if is_stopped:
        pywrap_tfe.TFE_Py_TapeSetRestartOnThread()
    try:
        yield
    finally:
        if is_stopped:
            pywrap_tfe.TFE_Py_TapeSetStopOnThread()


@contextlib.contextmanager
def _closed(tapes: list[Any]) -> Iterator[None]:
    for each in tapes:
        pywrap_tfe.TFE_Py_TapeSetRemove(each._tape)
    try:
        yield
    finally:
        for each in tapes:
            pywrap_tfe.TFE_Py_TapeSetAdd(each._tape)


def _open_here() -> list[Any]:
    """The tapes that are open in this thread. TensorFlow does not list them."""
    if pywrap_tfe.TFE_Py_TapeSetIsEmpty():
        return []
    return [each for each in instances_of(tape.Tape) if _is_open_here(each)]


def _is_open_here(known: tape.Tape) -> bool:
    """Whether something that a tape alone watches is watched by a tape that is open in this thread."""
    with tf.init_scope():
        something = tf.constant(0.0)
    pywrap_tfe.TFE_Py_TapeWatch(known._tape, something)
    return bool(pywrap_tfe.TFE_Py_TapeSetShouldRecordBackprop([something]))
