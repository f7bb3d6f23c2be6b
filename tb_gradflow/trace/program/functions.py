"""Records each `tf.function` that takes a gradient, like `watch`, when the program calls it."""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import polymorphic_function
from tensorflow.python.util import traceback_utils

from tb_gradflow.trace.program import eager_loops, hooks
from tb_gradflow.trace.program.attention import is_left_alone, left_alone
from tb_gradflow.trace.program.code import of_library, seems_to_take_gradients
from tb_gradflow.trace.program.faults import reported
from tb_gradflow.trace.program.recording import Place, Recording, keep_with, kept_with

_LEFT_ALONE, _NOT_YET, _LIKELY = object(), object(), object()
"""Functions that are not recorded; that have taken no gradient yet; and that probably take one, but were not called
yet.
"""


class Call:
    """The first call of a function.

    Attributes:
        takes_gradients: Whether a gradient was requested during it.
        by_author: Whether the program has recorded them itself.
    """

    def __init__(self) -> None:
        self.takes_gradients = False
        self.by_author = False


class _OfThread(threading.local):
    call: Call | None = None


_of_thread = _OfThread()


def install() -> None:
    """Permanently replaces the functions that call a `tf.function`."""
    kind = polymorphic_function.Function
    kind.__call__ = _calling(vars(kind)["__call__"])
    kind.__getstate__ = _without_kept(vars(kind)["__getstate__"])
    for name in ("gradient", "jacobian", "batch_jacobian"):
        setattr(tf.GradientTape, name, _taking(vars(tf.GradientTape)[name]))


def is_recorded_by_its_author() -> None:
    """Called when the program has called `summary.gradients`."""
    if _of_thread.call is not None:
        _of_thread.call.by_author = True


def _taking(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def take(*args: Any, **kwargs: Any) -> Any:
        if _of_thread.call is not None:
            _of_thread.call.takes_gradients = True
        return original(*args, **kwargs)

    return take


def _calling(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        recording = hooks.current()
        if recording is None or is_left_alone() or not tf.executing_eagerly() or eager_loops.is_part_of_a_step():
            return original(self, *args, **kwargs)
        kept = kept_with(self, recording)
        state = _first_seen(recording, self) if kept is None else kept.value
        if state is _LEFT_ALONE:
            return original(self, *args, **kwargs)
        if state is _NOT_YET:
            return _observe(original, recording, self, args, kwargs)
        if state is _LIKELY:
            return _try(recording, self, args, kwargs)
        eager_loops.close()
        return _run(state, args, kwargs)

    return call


def _first_seen(recording: Recording, function: Any) -> object:
    """Decides what to do with a function that is not known yet."""
    plain = function.python_function
    with reported():
        if of_library(plain):
            return keep_with(function, recording, _LEFT_ALONE).value
        if seems_to_take_gradients(plain):
            return _LIKELY
    return keep_with(function, recording, _NOT_YET).value


def _run(watched: Any, args: Any, kwargs: Any) -> Any:
    """A recorded step. Its exceptions have the traceback that TensorFlow gives exceptions of a `tf.function`."""
    with left_alone():
        return traceback_utils.filter_traceback(watched)(*args, **kwargs)


def _try(recording: Recording, function: Any, args: Any, kwargs: Any) -> Any:
    """The first call of a function that probably trains: recorded from its first step on, if it does."""
    place, watched = _watched(recording, function)
    if place is None:
        keep_with(function, recording, _LEFT_ALONE)
        return function(*args, **kwargs)
    eager_loops.close()
    call = None
    try:
        with _observed() as call:
            return _run(watched, args, kwargs)
    finally:
        if call is not None and call.takes_gradients and not call.by_author:
            keep_with(function, recording, watched)
        else:
            watched.discard()
            recording.drop(place)
            keep_with(function, recording, _LEFT_ALONE if call is not None and call.by_author else _NOT_YET)


def _observe(original: Callable[..., Any], recording: Recording, function: Any, args: Any, kwargs: Any) -> Any:
    """A call of a function that has taken no gradient yet. Once a trace of it takes one, it is recorded from the next
    call on.
    """
    # If functions run eagerly, its gradients do not belong to an eager loop.
    with _observed() as call, left_alone() if tf.config.functions_run_eagerly() else contextlib.nullcontext():
        outputs = original(function, *args, **kwargs)
    if call.by_author:
        keep_with(function, recording, _LEFT_ALONE)
    elif call.takes_gradients:
        _, watched = _watched(recording, function)
        keep_with(function, recording, _LEFT_ALONE if watched is None else watched)
    return outputs


def _watched(recording: Recording, function: Any) -> tuple[Place | None, Any]:
    with reported():
        place = recording.begin(name_of(function.python_function))
        if place is not None:
            # Keras is loaded here at the latest; a program that trains nothing does not load it.
            from tb_gradflow.trace.program.recorders import watching

            watched = watching(recording, place, function)
            recording.keeps(watched)
            return place, watched
    return None, None


def name_of(function: Any) -> str:
    """The name that its author uses; for a lambda, the line that contains it."""
    plain = inspect.unwrap(function)
    plain = getattr(plain, "__func__", plain)
    name = str(getattr(plain, "__name__", type(plain).__name__))
    if name != "<lambda>":
        return name
    return eager_loops.name_of_line(plain.__code__.co_filename, plain.__code__.co_firstlineno)


@contextlib.contextmanager
def _observed() -> Iterator[Call]:
    before, call = _of_thread.call, Call()
    _of_thread.call = call
    try:
        yield call
    finally:
        _of_thread.call = before
        if before is not None:
            before.takes_gradients |= call.takes_gradients


def _without_kept(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def getstate(self: Any) -> Any:
        state = original(self)
        state.pop("_tb_gradflow_kept", None)
        return state

    return getstate
